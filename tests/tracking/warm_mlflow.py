"""Imported before a fork: what every projection would otherwise import, map and compile once more."""

import mlflow
import mlflow.store.tracking.sqlalchemy_store  # noqa: F401
from sqlalchemy.orm import configure_mappers

from xspec.report.html import _template
from xspec.tracking import mlflow_runs  # noqa: F401

configure_mappers()
_template()
