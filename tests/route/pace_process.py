"""A process that shares a pace with others: run by test_shared_pace with a folder, a limit, and what to do.

Prints a JSON line when it is ready and one at the end: attempts made and the most seen under way.
"""

import asyncio
import json
import sys
import time
from pathlib import Path

from xspec.route.pacing import Pacer, Slot
from xspec.route.shared_pace import SharedMeter


async def work(pacer: Pacer, seconds: float, at_once: int, hold_s: float) -> tuple[int, int]:
    end, made, most = time.monotonic() + seconds, 0, 0

    async def one() -> None:
        nonlocal made, most
        while time.monotonic() < end:
            async with pacer.slot() as slot:
                assert isinstance(slot, Slot)
                made, most = made + 1, max(most, slot.concurrency)
                await asyncio.sleep(hold_s)

    await asyncio.gather(*(one() for _ in range(at_once)))
    return made, most


def main() -> None:
    folder, limit, seconds, at_once, hold_s = sys.argv[1:]
    meter = SharedMeter(Path(folder), int(limit))
    pacer = Pacer(int(limit), meter)
    print(json.dumps({"ready": True}), flush=True)
    cpu = time.process_time()
    made, most = asyncio.run(work(pacer, float(seconds), int(at_once), float(hold_s)))
    print(json.dumps({"made": made, "most": most, "cpu_s": time.process_time() - cpu}), flush=True)
    meter.close()


if __name__ == "__main__":
    main()
