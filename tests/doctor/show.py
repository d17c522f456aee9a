"""Prints what doctor says of a healthy provider and of broken set-ups: `python tests/doctor/show.py [NAME…]`."""

import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))
from conftest import KEY, Provider

CASES = {
    "healthy": (Provider(), {}, {}),
    "missing key": (Provider(), {}, {"LAB_KEY": ""}),
    "wrong path": (Provider(path="/chat/completions"), {}, {}),
    "wrong model": (Provider(), {"provider.model": "smal-2026-01-01"}, {}),
    "401": (Provider(status=401), {}, {}),
    "gateway": (
        Provider(
            served=("small-2026-01-01", "small-2026-01-01", "tiny-2025-06-01"),
            headers={"X-Oneapi-Request-Id": "r1"},
            fingerprint=None,
            texts=("a", "b"),
        ),
        {},
        {},
    ),
    "429 storm": (Provider(limited=10**6), {"route.max_wait_s": "300"}, {}),
    "proxy": (
        Provider(),
        {},
        {"HTTPS_PROXY": "http://user:pw@10.0.0.1:3128", "OPENAI_BASE_URL": "http://elsewhere"},
    ),
}

for name in sys.argv[1:] or CASES:
    provider, changes, variables = CASES[name]
    with provider.serving(), tempfile.TemporaryDirectory() as cwd:
        environ = {
            "PATH": "/usr/bin:/bin",
            "HOME": cwd,
            "LAB_KEY": KEY,
            **variables,
            "PYTHONIOENCODING": "utf-8",
        }
        environ = {n: v for n, v in environ.items() if v}
        overrides = [*provider.overrides(**changes), "benchmark.limit=5", "store=/tmp/xspec-doctor-show"]
        print(f"--- {name}")
        done = subprocess.run(
            [sys.executable, "-m", "xspec", "doctor", *overrides], env=environ, cwd=cwd, check=False
        )
        print(f"exit code {done.returncode}", flush=True)
