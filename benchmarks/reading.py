"""Reading of large tables: ``python -m benchmarks.reading [--before TREE] [--folder FOLDER]``.

Ratios of CPU time within one run, medians of several, alternating. CSV of 10⁶ rows and eight
columns, of which two are used, with all questions, beside what Polars takes for the two columns and
``Predictions.of`` for their checks. Parquet of 10⁷ rows into a tally beside the tree of an earlier
version, each in a process of its own. Peak memory of a stream of 5·10⁶ and of 10⁷ rows.
"""

from __future__ import annotations

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import polars as pl

import caltest as ct

#: Times that every job is done, after one that warms up.
REPEATS = 7
#: What a process of its own prints: CPU seconds of each scan, and the most memory in MB that is
#: no file (Linux), if there is one.
SCAN = """
import re, sys, threading, time
from pathlib import Path
import caltest as ct
times, peaks, done = [], [0.0], threading.Event()

def watch():
    while not done.wait(0.01):
        size = re.search(r"RssAnon:\\s+(\\d+)", Path("/proc/self/status").read_text())
        peaks.append(int(size[1]) / 1024.0)

if sys.argv[2] == "1":
    threading.Thread(target=watch, daemon=True).start()
for _ in range(int(sys.argv[2])):
    start = time.process_time()
    ct.scan(sys.argv[1], probs="p", label="y", lens="usual")
    times.append(time.process_time() - start)
done.set()
print(*times, max(peaks))
"""


def rows(n: int, text: bool) -> pl.DataFrame:
    """Return calibrated predictions beside six columns, with ``text`` more of them words."""
    rng = np.random.default_rng(0)
    p = rng.beta(1.2, 1.8, n).round(6)
    ids = np.arange(n)
    columns = {
        "id": [f"a{k:07d}" for k in rng.permutation(n)] if text else ids,
        "age": rng.integers(18, 95, n),
        "sex": rng.choice(["female", "male"], n),
        "region": rng.choice([*"ABCDEFGH"], n),
        "bmi": rng.normal(26.0, 4.0, n).round(2),
        "p": p,
        "y": (rng.random(n) < p).astype(np.int64),
        "day": np.datetime64("2020-01-01") + rng.integers(0, 900, n) if text else rng.random(n),
    }
    return pl.DataFrame(columns)


def ratios(jobs: Sequence[Callable[[], object]]) -> list[float]:
    """Return the median CPU seconds of jobs that take turns."""
    times: list[list[float]] = [[] for _ in jobs]
    for turn in range(REPEATS + 1):
        for job, taken in zip(jobs, times, strict=True):
            start = time.process_time()
            job()
            if turn:
                taken.append(time.process_time() - start)
    return [statistics.median(taken) for taken in times]


def csv(path: Path, what: str) -> None:
    """Compare reading with Polars' own and the checks of arrays."""

    def alone() -> pl.DataFrame:
        return pl.read_csv(path, columns=["p", "y"])

    def checked() -> ct.Predictions:
        frame = alone()
        return ct.Predictions.of(frame["p"].to_numpy(), frame["y"].to_numpy())

    own, polars, both = ratios([lambda: ct.read_predictions(path), alone, checked])
    print(
        f"{what:34} {own:6.3f} s   polars {polars:6.3f} s   polars and checks {both:6.3f} s   "
        f"ratio {own / both:.2f}"
    )


def scanned(path: Path, tree: str, times: int = 1) -> tuple[list[float], float]:
    """Return CPU seconds of scans by a tree of caltest, and the peak memory in MB."""
    call = [sys.executable, "-c", SCAN, str(path), str(times)]
    said = subprocess.run(
        call, env={**os.environ, "PYTHONPATH": tree}, check=True, capture_output=True, text=True,
        cwd=path.parent,
    )  # fmt: skip
    *seconds, memory = map(float, said.stdout.split())
    return seconds, memory


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--before", help="a tree of caltest to compare with")
    options.add_argument("--folder", help="where tables are written; they stay there")
    asked = options.parse_args()
    here = str(Path(ct.__file__).parents[1])
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(asked.folder or temporary)
        for text in (False, True):
            path = folder / ("words.csv" if text else "numbers.csv")
            if not path.exists():
                rows(1_000_000, text).write_csv(path)
            csv(path, f"CSV 10⁶ × 8, {'ids and dates' if text else 'numbers'}")
        peaks = []
        for n in (5_000_000, 10_000_000):
            path = folder / f"{n}.parquet"
            if not path.exists():
                rows(n, False).write_parquet(path, row_group_size=500_000)
            peaks.append(scanned(path, here)[1])
        print(f"memory of a scan of 5·10⁶ and 10⁷ rows: {peaks[0]:.0f} and {peaks[1]:.0f} MB")
        trees = [here, *[asked.before] * bool(asked.before)]
        seconds: dict[str, list[float]] = {tree: [] for tree in trees}
        for _ in range(3):
            for tree in trees:
                seconds[tree] += scanned(path, tree, 2)[0]
        medians = [statistics.median(taken) for taken in seconds.values()]
        print(f"Parquet 10⁷ to Tally: {medians[0]:.2f} s")
        if asked.before:
            print(f"  before {medians[1]:.2f} s, ratio {medians[0] / medians[1]:.2f}")


if __name__ == "__main__":
    main()
