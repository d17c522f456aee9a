"""After a command's result is on the screen: what is stored, brought into Parquet and MLflow."""

import os

from xspec.cli.say import say
from xspec.errors import XspecError
from xspec.spec.store import Store
from xspec.tracking.project import project_all, project_tables_of

MLFLOW = "XSPEC_MLFLOW"
"""The variable that, set to `later`, leaves MLflow to `python -m xspec project` or `ui`: its import costs seconds."""


def bring_up_to_date(store: Store) -> None:
    """Brings Parquet and MLflow up to date; what fails is said, and tried again by the next command."""
    try:
        if os.environ.get(MLFLOW) == "later":
            project_tables_of(store)
        else:
            project_all(store)
    except XspecError as error:
        say(str(error))
    except OSError as error:
        say(f"the tables could not be brought up to date ({error.strerror or error}); `project` tries again")
