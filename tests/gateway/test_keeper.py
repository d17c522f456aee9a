"""What becomes of a command whose gateway is killed before it could end it."""

from typing import Any

import psutil

DEADLINE_S = 90


def test_what_a_killed_gateway_ran_ends_with_it(kit: Any) -> None:
    """The command, deaf to requests to end, and what it started."""
    program = """
        import os, signal, subprocess, sys, time
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"])
        print(os.getpid(), child.pid, flush=True)
        time.sleep(600)
    """
    with kit.program(program) as command:
        process = kit.start("gateway", *kit.overrides(9), f"store={kit.store.path}", "--", *command)
        assert process.stdout is not None
        started = [psutil.Process(int(pid)) for pid in process.stdout.readline().split()]
        keepers = [p for p in psutil.Process(process.pid).children() if p not in started]
        process.kill()
        process.wait(DEADLINE_S)
        _, alive = psutil.wait_procs([*started, *keepers], timeout=20)
        for left in alive:
            left.kill()
        assert alive == []
        assert len(keepers) == 1
        process.communicate()
