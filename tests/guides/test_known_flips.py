"""What is told of a rehearsed generation, whose truth is known."""

from xspec.experiment.known_flips import Found, Step


def steps(*numbers: int) -> frozenset[Step]:
    return frozenset((0, "t", number) for number in numbers)


def test_marked_steps_that_only_part_by_a_detour_are_told_apart() -> None:
    found = Found(marked=steps(1, 2, 3), true=steps(1, 5), silent=steps(5), detours=steps(1, 2, 4))
    assert (found.precision, found.recall) == (1 / 3, 1 / 2)
    assert found.text().endswith(
        "1 of 3 marked steps are ones where it flips (precision 33%); of 2 such steps 1 are marked (recall 50%); at 1 "
        "the run gave up with an empty reply, which is not scored; at 1 of the others runs part by a detour, which "
        "changes nothing"
    )


def test_nothing_marked_has_no_precision() -> None:
    assert (
        Found(steps(), steps(), steps())
        .text()
        .endswith("(no precision); of 0 such steps 0 are marked (no recall)")
    )
