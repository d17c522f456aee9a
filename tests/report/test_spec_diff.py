"""What differs between two specs, and what keeps them from being compared."""

from pathlib import Path
from typing import Any

import pytest

from xspec.__main__ import main
from xspec.spec.canonical import canonical_bytes
from xspec.spec.diff import ABSENT, FieldDiff, changed_tasks, comparable, diff_specs, share_member
from xspec.spec.store import Store


def test_equal_specs_differ_in_nothing(make: Any) -> None:
    assert diff_specs(make.spec(), make.spec(sampling={"temperature": 0.0})) == []


def test_fields_are_named_by_path_and_sorted(make: Any) -> None:
    a = make.spec(sampling={"temperature": 0, "seed": 1})
    b = make.spec(sampling={"temperature": 0.5}, timeout_s=30, k=3)
    assert diff_specs(a, b) == [
        FieldDiff("k", 2, 3, factor=False),
        FieldDiff("route.timeout_s", 60, 30, factor=False),
        FieldDiff("sampling.seed", 1, ABSENT, factor=False),
        FieldDiff("sampling.temperature", 0, 0.5, factor=False),
    ]
    assert [str(diff) for diff in diff_specs(a, b)][2] == "sampling.seed: 1 → (not sent)"


def test_absent_is_not_null(make: Any) -> None:
    a = make.spec(members=[make.openai_member(extra_body={"provider": {"order": None}})])
    b = make.spec(members=[make.openai_member(extra_body={"provider": {}})])
    (diff,) = diff_specs(a, b)
    assert (diff.field, diff.a, diff.b) == ("route.members.gpt.extra_body.provider.order", None, ABSENT)
    assert str(diff).endswith("order: null → (not sent)")


def test_true_is_not_one(make: Any) -> None:
    a = make.spec(members=[make.openai_member(extra_body={"x": [1, {"y": 0.0}]})])
    b = make.spec(members=[make.openai_member(extra_body={"x": [True, {"y": 0}]})])
    c = make.spec(members=[make.openai_member(extra_body={"x": [1, {"y": 0}]})])
    assert len(diff_specs(a, b)) == 1
    assert a.id == c.id
    assert diff_specs(a, c) == []


def test_tasks_are_summarised(make: Any) -> None:
    a, b = make.spec(tasks=["t.0", "t.1", "t.2"]), make.spec(tasks=["t.1", "t.2", "t.3", "t.4"])
    (diff,) = diff_specs(a, b)
    assert diff == FieldDiff("benchmark.tasks", ["t.0"], ["t.3", "t.4"], factor=False)
    assert str(diff) == "benchmark.tasks: 1 removed (t.0), 2 added (t.3, t.4)"
    many = make.spec(tasks=[f"t.{i}" for i in range(10)])
    assert str(diff_specs(make.spec(), many)[0]).endswith("7 added (t.3, t.4, t.5, t.6, t.7 and 2 more)")
    (turned,) = diff_specs(make.spec(tasks=["t.0", "t.1"]), make.spec(tasks=["t.1", "t.0"]))
    assert str(turned) == "benchmark.tasks: the same tasks in another order"


def test_factors(make: Any) -> None:
    a = make.spec()
    b = make.spec(members=[make.member("a"), make.member("b")], guide="a", seed=7)
    diffs = diff_specs(a, b)
    assert [diff.field for diff in diffs] == [
        "guide.digest",
        "guide.kind",
        "route.granularity",
        "route.members.b",
        "route.mode",
        "route.seed",
    ]
    assert all(diff.factor for diff in diffs)
    assert comparable(a, b) == []
    assert str(diffs[3]) == "route.members.b: (absent) → rehearsal rehearsal-b"


def test_member_order_differs_between_pools(make: Any) -> None:
    pool = [make.member("a"), make.member("b")]
    (diff,) = diff_specs(make.spec(members=pool), make.spec(members=pool[::-1]))
    assert diff == FieldDiff("route.members.(order)", ["a", "b"], ["b", "a"], factor=True)


def test_the_seed_of_two_floating_routes_is_no_factor(make: Any) -> None:
    pool = [make.member("a"), make.member("b")]
    obstacles = comparable(make.spec(members=pool, seed=1), make.spec(members=pool, seed=2))
    assert [diff.field for diff in obstacles] == ["route.seed"]


@pytest.mark.parametrize("changes", [{"k": 3}, {"tasks": ["t.0"]}, {"timeout_s": 1}, {"sampling": {}}])
def test_anything_else_is_an_obstacle(make: Any, changes: dict[str, Any]) -> None:
    assert len(comparable(make.spec(), make.spec(guide="a", **changes))) == 1


def test_arms_share_a_member(make: Any) -> None:
    a, b = make.spec(members=[make.member("a")]), make.spec(members=[make.member("b")])
    (obstacle,) = comparable(a, b)
    assert str(obstacle) == "route.members: none in common (a | b)"
    assert not obstacle.factor


def test_a_shared_member_is_one_of_equal_settings_not_of_equal_name(make: Any) -> None:
    renamed = make.member("a") | {"name": "another"}
    assert share_member(make.spec(), make.spec(members=[renamed]))
    assert not share_member(make.spec(), make.spec(members=[make.member("a", model="other")]))


def test_manifests_are_told_apart_task_by_task() -> None:
    a = {"package": {"p": "1"}, "tasks": [{"id": "x", "data": "1"}, {"id": "y", "data": "1"}]}
    b = {"package": {"p": "2"}, "tasks": [{"id": "x", "data": "2"}, {"id": "y", "data": "1"}, {"id": "z"}]}
    assert changed_tasks(a, a) == ([], [])
    assert changed_tasks(a, b) == (["x", "z"], ["package"])


def test_the_verb_names_the_tasks_that_changed(
    make: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    store = Store(tmp_path / "store")
    ids = []
    for data in ("1", "2"):
        spec = make.spec()
        manifest = {"tasks": [{"id": task, "data": data} for task in spec.benchmark.tasks[:1]]}
        digest = store.put_blob(canonical_bytes(manifest))
        changed = spec.model_copy(
            update={"benchmark": spec.benchmark.model_copy(update={"manifest": digest})}
        )
        store.put_spec(changed)
        ids.append(changed.id)
    assert main(["diff", *ids, "--store", str(tmp_path / "store")]) == 0
    said = capsys.readouterr().out
    assert "DIFFERS  benchmark.manifest" in said
    assert f"other tasks: {spec.benchmark.tasks[0]}" in said
