"""The statistics again, slow and obvious: plain loops over plain lists, one resample after another.

Nothing here imports xspec. Codes: 0 missing, 1 invalid, 2 fail, 3 pass.
"""

import math
from collections import defaultdict
from collections.abc import Sequence
from itertools import combinations, product

METRICS = ("mean_at_k", "pass_hat_k", "pass_at_k", "gap", "flip_rate", "disagreement")


def task_values(outcomes, k, invalid_as_fail=False):
    """Per complete task its figures, by listing every choice of k of its trials."""
    found = {}
    if not any(code >= 2 for row in outcomes for code in row):
        return found
    for task, codes in enumerate(zip(*outcomes, strict=True)):
        if invalid_as_fail:
            trials = [code == 3 for code in codes]
            if 0 in codes or len(trials) < k:
                continue
        else:
            trials = [code == 3 for code in codes if code >= 2]
            if len(trials) < k:
                continue
        choices = list(combinations(trials, k))
        mean = sum(trials) / len(trials)
        always = sum(all(choice) for choice in choices) / len(choices)
        pairs = list(combinations(trials, 2))
        found[task] = {
            "mean_at_k": mean,
            "pass_hat_k": always,
            "pass_at_k": sum(any(choice) for choice in choices) / len(choices),
            "gap": mean - always,
            "flip_rate": float(len(set(trials)) == 2),
            "disagreement": sum(a != b for a, b in pairs) / len(pairs) if pairs else 0.0,
        }
    return found


def goals(outcomes, scenarios, sizes, invalid_as_fail=False):
    """Complete scenarios, and their mean over runs of the share of tasks, and of whole scenarios, that pass."""
    if not any(code >= 2 for row in outcomes for code in row):
        return [], None, None
    complete = []
    for scenario in sorted(set(scenarios)):
        tasks = [task for task, label in enumerate(scenarios) if label == scenario]
        codes = [row[task] for row in outcomes for task in tasks]
        if len(tasks) == sizes[tasks[0]] and min(codes) >= (1 if invalid_as_fail else 2):
            complete.append(tasks)
    if not complete:
        return [], None, None
    task_shares, scenario_shares = [], []
    for row in outcomes:
        passed = [[row[task] == 3 for task in tasks] for tasks in complete]
        flat = [one for tasks in passed for one in tasks]
        task_shares.append(sum(flat) / len(flat))
        scenario_shares.append(sum(all(tasks) for tasks in passed) / len(passed))
    return complete, sum(task_shares) / len(outcomes), sum(scenario_shares) / len(outcomes)


def by_cluster(values, labels):
    """Lists of values by cluster, clusters in sorted order."""
    groups = defaultdict(list)
    for value, label in zip(values, labels, strict=True):
        groups[label].append(value)
    return [groups[label] for label in sorted(groups)]


def mean_and_se(groups):
    """Mean over all tasks and its cluster-robust standard error with the factor G/(G-1)."""
    tasks = sum(len(group) for group in groups)
    mean = sum(sum(group) for group in groups) / tasks
    squares = sum(sum(value - mean for value in group) ** 2 for group in groups)
    return mean, math.sqrt(squares * len(groups) / max(len(groups) - 1, 1)) / tasks


def bootstrap_t(groups, draws, level=0.95):
    """Lower and upper limit. `draws` holds lists of cluster numbers."""
    mean, se = mean_and_se(groups)
    students = []
    for drawn in draws:
        again, spread = mean_and_se([groups[number] for number in drawn])
        if spread < 1e-9:
            students.append(0.0 if abs(again - mean) < 1e-9 else math.copysign(math.inf, again - mean))
        else:
            students.append((again - mean) / spread)
    students.sort()
    tail = round((1 - level) / 2 * (len(draws) + 1))
    return mean - students[-tail] * se, mean - students[tail - 1] * se


def sign_flip_p(groups, patterns=None):
    """Two-sided p. All patterns are listed unless random ones are given."""
    sums = [sum(group) for group in groups]
    found = abs(sum(sums)) - 1e-9
    exact = patterns is None
    listed = list(product((1, -1), repeat=len(sums)) if exact else patterns)
    count = 0
    for signs in listed:
        count += abs(sum(sign * value for sign, value in zip(signs, sums, strict=True))) >= found
    return count / len(listed) if exact else (1 + count) / (1 + len(listed))


def holm(p_values):
    """Each p times the number of hypotheses not yet rejected, never below an earlier one."""
    adjusted = [0.0] * len(p_values)
    largest = 0.0
    for rank, index in enumerate(sorted(range(len(p_values)), key=p_values.__getitem__)):
        largest = max(largest, min(1.0, (len(p_values) - rank) * p_values[index]))
        adjusted[index] = largest
    return adjusted


def levenshtein(a: Sequence[object], b: Sequence[object]) -> int:
    """Edit distance, the textbook table."""
    rows = [[i + j if i * j == 0 else 0 for j in range(len(b) + 1)] for i in range(len(a) + 1)]
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            change = rows[i - 1][j - 1] + (a[i - 1] != b[j - 1])
            rows[i][j] = min(rows[i - 1][j] + 1, rows[i][j - 1] + 1, change)
    return rows[-1][-1]


def act(trajectory, step):
    """What a trial called at a step; nothing beyond its end."""
    return trajectory[step][0] if step < len(trajectory) else ()


def parting(a, b):
    """First step at which two trials differ, or None."""
    for step in range(max(len(a), len(b))):
        if act(a, step) != act(b, step):
            return step
    return None


def divergence(table):
    """By task: distinct chains, first divergent step, mean similarity.

    A step is (calls, call event, observation event).
    """
    found = {}
    for task, runs in enumerate(table):
        trials = [trajectory for trajectory in runs if trajectory is not None]
        if not trials:
            continue
        chains = [tuple(call for step in trajectory for call in step[0]) for trajectory in trials]
        steps = [parting(a, b) for a, b in combinations(trials, 2)]
        similar = [1 - levenshtein(a, b) / max(len(a), len(b), 1) for a, b in combinations(chains, 2)]
        parted = [step for step in steps if step is not None]
        found[task] = (
            len(set(chains)),
            min(parted) if parted else None,
            sum(similar) / len(similar) if similar else None,
        )
    return found


def pair_steps(table):
    """(task, step, events of either run, parted?) for every pair of runs still on one prefix."""
    for task, runs in enumerate(table):
        for a, b in combinations([trajectory for trajectory in runs if trajectory is not None], 2):
            for step in range(max(len(a), len(b))):
                events = 0
                for trajectory in (a, b):
                    if step < len(trajectory):
                        events |= trajectory[step][1]
                    if 0 < step <= len(trajectory):
                        events |= trajectory[step - 1][2]
                parted = act(a, step) != act(b, step)
                yield task, step, events, parted
                if parted:
                    break


def hazard(rows, kind="any"):
    """Mantel-Haenszel ratio and attributable share of rows of `pair_steps`, None where undefined."""
    counts = defaultdict(lambda: [0, 0, 0, 0])
    for _, step, events, parted in rows:
        exposed = {"any": events != 0, "visible": events & 2 != 0, "hidden": events == 1}[kind]
        if exposed:
            counts[step][0] += parted
            counts[step][1] += 1
        elif events == 0:
            counts[step][2] += parted
            counts[step][3] += 1
    top = sum(a * n0 / (n1 + n0) for a, n1, b, n0 in counts.values() if n1 + n0)
    bottom = sum(b * n1 / (n1 + n0) for a, n1, b, n0 in counts.values() if n1 + n0)
    if bottom == 0 or top == 0:
        return None
    with_event = sum(cell[0] for cell in counts.values())
    parted = with_event + sum(cell[2] for cell in counts.values())
    return top / bottom, with_event / parted * (1 - bottom / top)
