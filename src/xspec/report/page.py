"""The page that an execution has among its artifacts in MLflow: itself beside what it may be compared with."""

from functools import lru_cache

from xspec.errors import StoreError
from xspec.records.executions import ExecutionFolder, executions_of
from xspec.records.parquet import journal_sizes
from xspec.report.build import build_report
from xspec.report.gateway import gateway_figures, is_gateway
from xspec.report.html import report_html
from xspec.report.load import load_record
from xspec.report.model import Report
from xspec.report.protection import without_protected_texts
from xspec.spec.diff import comparable
from xspec.spec.store import Store

_Key = tuple[tuple[str, tuple[tuple[int, int], ...]], ...]
"""Names of executions, and the sizes of their journals."""

_MOST = 12
"""Executions on one page, the newest; a store of hundreds must not be read for each of its executions."""


def comparison_page(store: Store, folder: ExecutionFolder, *, include_protected: bool = False) -> str:
    """HTML over the execution and the newest ones of comparable specs, as they stand now.

    Protected texts are left out unless they are to be included. If one of the others can't be read, the execution
    stands alone.
    """
    spec = store.spec(folder.info.spec_id)
    if is_gateway(store, folder):
        return report_html(Report((), (gateway_figures(store, folder),)))
    specs = {folder.info.spec_id: True}
    fitting = []
    for other in executions_of(store):
        spec_id = other.info.spec_id
        if spec_id not in specs:
            specs[spec_id] = not comparable(store.spec(spec_id), spec)
        if specs[spec_id] and journal_sizes(other):
            fitting.append(other)
    own = [other for other in fitting if other.path.name == folder.path.name]
    newest = [other for other in fitting if other not in own][-(_MOST - 1) :]
    chosen = sorted(own + newest, key=lambda f: f.path.name)
    try:
        return _page(store, folder.info.spec_id, _key(chosen), include_protected)
    except StoreError:
        return _page(store, folder.info.spec_id, _key(own), include_protected)


def _key(folders: list[ExecutionFolder]) -> _Key:
    return tuple((folder.path.name, tuple(journal_sizes(folder).items())) for folder in folders)


def _page(store: Store, spec_id: str, key: _Key, include_protected: bool) -> str:
    report = _report(store, key)
    home = next(g for g in report.groups if any(arm.spec_id == spec_id for arm in g.arms))
    return _html(store, key, home.index, include_protected)


@lru_cache(maxsize=2)
def _report(store: Store, key: _Key) -> Report:
    folders = [ExecutionFolder(store.path / "executions" / name) for name, _ in key]
    return build_report([load_record(store, folder) for folder in folders])


@lru_cache(maxsize=2)
def _html(store: Store, key: _Key, group: int, include_protected: bool) -> str:
    """The arms of a sweep end together and share one page."""
    report = Report((_report(store, key).groups[group],))
    return report_html(report if include_protected else without_protected_texts(report))
