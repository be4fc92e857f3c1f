"""Monitors of tallies: false alarms of a tally a day, and days until they ring beside rows.

``python -m validation.days`` prints the tables of
``docs/concepts/tallies.md`` (15 minutes of one core).
"""

from __future__ import annotations

import numpy as np

import caltest as ct

#: Calibrated streams: predictions, rows a day, streams; twenty days each.
CALIBRATED = (("uniform", 200, 1000), ("Beta(0.3, 0.6)", 200, 300), ("Beta(0.1, 3)", 200, 300))
CALIBRATED += (("uniform", 5000, 650), ("Beta(0.1, 3)", 5000, 60))
#: Slope 0.7 of uniform predictions: rows a day, days before, days at most.
DRIFTS = ((200, 0, 40), (200, 25, 60), (1000, 0, 20), (1000, 5, 20))
DAYS, STREAMS = 20, 100


def predictions(name: str, rng: np.random.Generator, n: int) -> np.ndarray:
    if name == "uniform":
        return rng.random(n)
    return rng.beta(*map(float, name[5:-1].split(",")), n)


def false_alarms(name: str, n: int, streams: int) -> list[float]:
    """Return how often evidence ever reached 1 : 20 and 1 : 100."""
    highest = []
    for stream in range(streams):
        rng, monitor = np.random.default_rng([0, stream, n]), ct.Monitor()
        for _ in range(DAYS):
            p = predictions(name, rng, n)
            monitor = monitor.update(ct.Tally.of(p, rng.random(n) < p))
        highest.append(monitor.highest)
    return [float(np.mean(np.array(highest) >= np.log(odds))) for odds in (20, 100)]


def delays(n: int, calm: int, most: int) -> list[float]:
    """Return the median row of the alarm: of tallies, of rows looked at daily, and of rows."""
    alarms = []
    for stream in range(STREAMS):
        rng = np.random.default_rng([0, stream, n])
        sums = rows = ct.Monitor(alpha=0.01)
        daily = np.inf
        for day in range(most):
            p = rng.random(n)
            q = p if day < calm else 1.0 / (1.0 + ((1.0 - p) / p) ** 0.7)
            y = rng.random(n) < q
            sums, rows = sums.update(ct.Tally.of(p, y)), rows.update(p, y)
            if rows.log_evidence >= rows.alarm_at:
                daily = min(daily, rows.n)
            if daily < np.inf and sums.alarm is not None:
                break
        alarms.append((sums.alarm or np.inf, daily, rows.alarm or np.inf))
    return np.median(alarms, axis=0).tolist()


def main() -> None:
    print("| predictions | rows a day | streams | ever 1 : 20 | ever 1 : 100 |")
    print("|---|--:|--:|--:|--:|")
    for name, n, streams in CALIBRATED:
        found = (f"{share:.3f}" for share in false_alarms(name, n, streams))
        print("|", " | ".join([name, str(n), str(streams), *found]), "|", flush=True)
    print("\n| rows a day | slope 0.7 from row | tally a day | rows, once a day | every row |")
    print("|--:|--:|--:|--:|--:|")
    for n, calm, most in DRIFTS:
        found = (f"{row:.0f}" for row in delays(n, calm, most))
        print("|", " | ".join([str(n), str(n * calm), *found]), "|", flush=True)


if __name__ == "__main__":
    main()
