"""Clusters of tasks, and the seeded draws over them.

Clusters are drawn whole, with all runs of their tasks and both arms: intervals describe *tasks like these*.
Runs inside a task are never resampled, which would bias Pass^k upward.
"""

from functools import lru_cache

import numpy as np
from numpy.typing import ArrayLike

from xspec.analysis.consistency import Floats, Ints

SEED = 20260915
RESAMPLES = 10_000
MIN_CLUSTERS = 10
"""With fewer clusters there is no p-value, and no bootstrap."""

# 2^13 sign patterns are fewer than the default number of draws, so up to here all are listed.
_EXACT_CLUSTERS = 13


def cluster_numbers(labels: ArrayLike | None, tasks: int) -> Ints:
    """Per task the number of its cluster, 0…G-1. Without labels every task is its own cluster.

    Raises ValueError when there is not one label a task.
    """
    if labels is None:
        return np.arange(tasks)
    array = np.asarray(labels)
    if array.shape != (tasks,):
        raise ValueError(f"one cluster label a task: {tasks} tasks, labels of shape {array.shape}")
    return np.unique(array, return_inverse=True)[1].astype(np.int64)


def cluster_sums(values: Floats, numbers: Ints) -> Floats:
    """Sums of the rows of `values` (tasks first) by cluster; every number from 0 to the largest occurs."""
    order = np.argsort(numbers, kind="stable")
    starts = np.searchsorted(numbers[order], np.arange(int(numbers.max(initial=-1)) + 1))
    if not starts.size:
        return np.zeros((0, *values.shape[1:]))
    return np.asarray(np.add.reduceat(values[order], starts, axis=0), dtype=np.float64)


@lru_cache(maxsize=16)  # arms, and their groups of tasks, mostly have the same numbers of clusters
def resample_counts(clusters: int, resamples: int, seed: int) -> Floats:
    """How often each cluster stands in each bootstrap resample: (resamples, clusters), rows sum to `clusters`."""
    drawn = np.random.default_rng(seed).integers(0, clusters, (resamples, clusters))
    drawn += np.arange(0, resamples * clusters, clusters)[:, np.newaxis]
    counts = np.bincount(drawn.ravel(), minlength=resamples * clusters)
    table = counts.reshape(resamples, clusters).astype(np.float64)
    table.flags.writeable = False
    return table


@lru_cache(maxsize=4)
def sign_patterns(clusters: int, draws: int, seed: int) -> tuple[Floats, bool]:
    """Signs by pattern and cluster, and whether these are all patterns that there are.

    Up to 13 clusters all 2^G are listed; beyond, `draws` random ones.
    """
    exact = clusters <= _EXACT_CLUSTERS
    if exact:
        bits = np.arange(2**clusters)[:, np.newaxis] >> np.arange(clusters) & 1
    else:
        bits = np.random.default_rng(seed).integers(0, 2, (draws, clusters), dtype=np.int8)
    signs: Floats = 1.0 - 2.0 * bits.astype(np.float64)
    signs.flags.writeable = False
    return signs, exact
