"""How large the clusters are that a spec's tasks come from, by the rows of the manifest."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any


def scenario_sizes(tasks: Sequence[str], rows: Mapping[str, Mapping[str, Any]]) -> list[int]:
    """For each task how many tasks the benchmark has of its cluster, also those that the spec left out.

    `rows` has the manifest's row of each task. Where the manifest itself may lack some, as it does for a list that a
    user made, a row says how many there are.
    """
    listed = Counter(row.get("cluster") or task for task, row in rows.items())
    sizes = []
    for task in tasks:
        row = rows.get(task, {})
        sizes.append(int(row.get("cluster_tasks") or listed[row.get("cluster") or task] or 1))
    return sizes
