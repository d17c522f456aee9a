"""Fixtures that several rooms' tests share."""

import json
import os
from typing import Any

import pytest

from xspec.spec.canonical import digest_of
from xspec.spec.models import ExperimentSpec

os.environ["XSPEC_MLFLOW"] = "later"  # three seconds a command; tests of tracking ask for it themselves


def spec_plain() -> dict[str, Any]:
    """A small spec against one OpenAI-compatible member."""
    return {
        "scheme": 1,
        "benchmark": {
            "kind": "agentdojo",
            "version": "v1.2.2",
            "split": "all",
            "tasks": ["banking.user_task_0", "slack.user_task_1"],
            "manifest": digest_of(b"manifest"),
        },
        "agent": {
            "kind": "tool_loop",
            "version": 1,
            "max_steps": 30,
            "tool_timeout_s": 60,
            "prompt": digest_of(b"prompt"),
        },
        "route": {
            "mode": "fixed",
            "members": [
                {
                    "kind": "openai",
                    "name": "main",
                    "base_url": "http://127.0.0.1:9/api",
                    "path": "/v1/chat/completions",
                    "model": "small-2026-01-01",
                    "api_key_env": "XSPEC_TEST_KEY",
                }
            ],
            "timeout_s": 120,
            "max_wait_s": 300,
            "retry": {
                "max_attempts": 3,
                "backoff_s": 1,
                "backoff_base": 2,
                "backoff_max_s": 60,
                "statuses": [429, 500, 502, 503],
                "timeouts": True,
                "connection_errors": True,
            },
        },
        "sampling": {"temperature": 0, "top_p": 1, "seed": 42, "max_tokens": 8192},
        "drift": {"served_model": "invalidate", "upstream": "invalidate", "fingerprint": "record"},
        "guide": {"kind": "none"},
        "k": 5,
    }


@pytest.fixture
def plain() -> dict[str, Any]:
    """Plain data of a valid spec, to be changed by the test."""
    return spec_plain()


@pytest.fixture
def spec(plain: dict[str, Any]) -> ExperimentSpec:
    """A valid spec."""
    return ExperimentSpec.model_validate_json(json.dumps(plain))


def pytest_sessionfinish(session: pytest.Session) -> None:
    """A test may skip where a user lacks something; continuous integration has it all, so there a skip is a failure."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if os.environ.get("CI") and reporter is not None and reporter.stats.get("skipped"):
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
