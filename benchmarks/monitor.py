"""Looking as the rows come in: ``python -m benchmarks.monitor``.

CPU seconds of updates with one row and with 10⁴ rows, and of a NumPy loop that adds up the log
scores of the same rows one by one.
"""

from __future__ import annotations

import numpy as np

import caltest as ct
from benchmarks.measure import seconds

ROWS = 10_000


def main() -> None:
    rng = np.random.default_rng(1)
    p = rng.random(ROWS)
    y = (rng.random(ROWS) < p).astype(int)
    pairs = [(float(a), int(b)) for a, b in zip(p, y, strict=True)]
    begun = ct.Monitor().update(p, y)

    def one_by_one() -> None:
        monitor = begun
        for a, b in pairs:
            monitor = monitor.update(a, b)

    def scores() -> float:
        return sum(float(np.log(a if b else 1.0 - a)) for a, b in pairs)

    batch, single, loop = seconds(lambda: begun.update(p, y)), seconds(one_by_one), seconds(scores)
    print(f"batches of {ROWS}: {ROWS / batch / 1e6:.2f} million rows a second")
    print(f"one row at a time: {1e6 * single / ROWS:.1f} µs a row, {single / loop:.1f} × the loop")


if __name__ == "__main__":
    main()
