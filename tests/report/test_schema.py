"""Reports are read by other programs: what was written once stays valid by the schema of its own version."""

import json
from pathlib import Path
from typing import Any

import pytest
from jsonschema import Draft202012Validator

import xspec.report
from xspec.report.build import build_report
from xspec.report.json_form import report_json
from xspec.report.model import SCHEMA

SCHEMAS = Path(xspec.report.__path__[0]) / "schemas"
STORED = Path(__file__).parent / "stored"


def validator(version: int) -> Draft202012Validator:
    schema = json.loads((SCHEMAS / f"report-{version}.json").read_text())
    Draft202012Validator.check_schema(schema)
    return Draft202012Validator(schema)


@pytest.mark.parametrize("path", sorted(STORED.glob("*.json")), ids=lambda path: path.stem)
def test_a_stored_report_still_validates(path: Path) -> None:
    data = json.loads(path.read_text())
    validator(data["report_schema"]).validate(data)


def test_the_newest_schema_is_the_one_written() -> None:
    versions = sorted(int(path.stem.removeprefix("report-")) for path in SCHEMAS.glob("report-*.json"))
    assert versions == list(range(1, SCHEMA + 1))
    assert {path.stem for path in STORED.glob("*.json")} == {f"report-{version}" for version in versions}


@pytest.mark.parametrize(
    "rows", [["+++", "+-+"], ["???", "???"], ["...", "+-?"], ["+++", "+++"], ["---", "---"]]
)
def test_what_is_written_now_validates(make: Any, rows: list[str]) -> None:
    records = [
        make.record(make.spec(), rows, execution="x-1"),
        make.record(make.spec(guide="a"), ["+++", "++-"], execution="x-2"),
    ]
    data = json.loads(report_json(build_report(records)))
    validator(SCHEMA).validate(data)


def test_the_schema_finds_what_is_wrong(make: Any) -> None:
    data = json.loads(report_json(build_report([make.record(make.spec(), ["+++", "+-+"])])))
    data["arms"][0]["gap_pp"] = "16.7"
    del data["comparisons"]
    assert len(list(validator(SCHEMA).iter_errors(data))) == 2
