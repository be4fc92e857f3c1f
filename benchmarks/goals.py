"""Every goal for speed beside its measurement: ``python -m benchmarks.goals [--quick] [word …]``.

CPU seconds of one thread and peak memory. Verbs run in processes of their own, imports included;
tests of 10⁴ and 10⁵ rows with B = 1000 are timed without imports, in milliseconds; rows resampled
as published stand beside the C program of :mod:`benchmarks.redraw`, and 10⁸ rows (10⁷ with
``--quick``) beside DuckDB's and Polars' grouping of the same files in one thread. A ratio above 1
misses its goal. Files are made from a seed. ``--against PATH`` measures another checkout as well.
"""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from statistics import median
from typing import NamedTuple

import numpy as np
import polars as pl

from benchmarks.designs import AUDITS, ONE_THREAD, asked, write
from benchmarks.measure import confident

#: CPU seconds that the audits of ``designs`` may take, by kind and rows.
AUDIT_GOALS = {
    ("independent", 50_000): 2.0, ("independent", 100_000): 2.0, ("clusters", 100_000): 3.5,
    ("series", 100_000): 5.0, ("followup", 50_000): 4.0, ("followup", 100_000): 8.0,
    ("folds", 100_000): 3.0,
}  # fmt: skip
#: CPU milliseconds that tests of so many rows may take, by statistic.
TEST_GOALS = {
    ("MultiScale()", 10_000): 27.0, ("Kuiper()", 10_000): 4.0, ("Kuiper()", 100_000): 35.0,
    ("SmoothECE()", 10_000): 60.0, ("ICI()", 10_000): 60.0, ("CORP()", 10_000): 20.0,
    ("SKCE(ct.LaplaceKernel(0.2))", 10_000): 7.8,
}  # fmt: skip
#: Ratios to C that resampling as published may have, by job of ``redraw``, and to DuckDB.
RATIO_GOALS = {"published, UniformBins(10), K=10": 2.5, "published, top-1, equal mass": 2.5,
               "published, VarianceTree(100, split='mean'), K=10": 2.0}  # fmt: skip
SCAN_GOALS = {"audit": 4.0, "test": 2.5}

#: What prints the median milliseconds of five tests, after one that compiles.
TIMED = """
import time, numpy as np, caltest as ct
rng = np.random.default_rng(0); p = rng.random({n}); y = rng.random({n}) < p
run = dict(null=ct.RedrawLabels(), n_resamples=1000, rng=1, workers=1)
data, times = ct.Predictions.of(p, y.astype(int)), []
for _ in range(6):
    start = time.process_time(); ct.calibration_test(data, None, ct.{test}, **run)
    times.append(time.process_time() - start)
print(1e3 * sorted(times[1:])[2])
"""
#: What groups the rows of all files in a folder into 15 bins, in one thread.
GROUPED = {
    "DuckDB": "import duckdb; c = duckdb.connect(); c.execute('set threads = 1'); c.execute("
    "\"select floor(15 * p), count(*), sum(p), sum(y) from '{files}' group by 1\").fetchall()",
    "Polars": "import polars as pl; pl.scan_parquet('{files}').group_by((15 * pl.col('p')).floor())"
    ".agg(pl.len(), pl.col('p').sum(), pl.col('y').sum()).collect(engine='streaming')",
}  # fmt: skip


class Goal(NamedTuple):
    """A job for Python's command line, how much it may take, and whether it prints its time."""

    name: str
    call: list[str]
    goal: float
    unit: str = "s"


def tables(folder: Path) -> dict[str, Path]:
    """Write the tables that verbs ask about: models, groups, words and a split of two parts."""
    n, rng = 100_000, np.random.default_rng(5)
    p = rng.beta(1.2, 1.8, n).round(5)
    columns = {"p": p, "y": (rng.random(n) < p).astype(int)}
    log_odds = np.log(np.clip(p, 1e-4, 1 - 1e-4) / (1 - np.clip(p, 1e-4, 1 - 1e-4)))
    models = {f"m{k}": 1 / (1 + np.exp(-(0.8 + 0.1 * k) * log_odds)) for k in range(1, 6)}
    words = {f"c{k}": rng.choice(list("abcde"), n) for k in range(20)}
    made = {
        "models": columns | models, "one": {**columns, "p": models["m1"]},
        "other": {**columns, "p": models["m2"]},
        "groups": columns | {"site": np.array([f"s{k:02d}" for k in rng.integers(0, 50, n)])},
        "words": columns | words,
    }  # fmt: skip
    paths = {name: folder / f"{name}.csv" for name in made}
    for name, table in made.items():
        pl.DataFrame(table).write_csv(paths[name])
    return paths


def parts(folder: Path, files: int, n: int) -> str:
    """Write Parquet files of n rows each and return the pattern of their names."""
    for k in range(files):
        path = folder / f"rows{files}-{k}.parquet"
        rng = np.random.default_rng(k)
        p = rng.random(n).astype(np.float32).astype(np.float64)
        pl.DataFrame({"p": p, "y": (rng.random(n) < p).astype(np.int8)}).write_parquet(path)
    return str(folder / f"rows{files}-*.parquet")


def jobs(folder: Path, wanted: list[str], quick: bool) -> Iterator[Goal]:
    """Yield the jobs whose names contain a word, with their files written."""
    audit, one = ["-m", "caltest", "audit"], ["--workers", "1"]

    def chosen(name: str) -> bool:
        return not wanted or any(word in name for word in wanted)

    for (kind, n), goal in AUDIT_GOALS.items():
        if chosen(name := f"audit {kind} {n}"):
            write(file := folder / f"{kind}{n}.csv", kind, n)
            yield Goal(name, [*audit, str(file), *AUDITS[kind][0], *one], goal)
    for n in (50_000, 50_002):
        if chosen(name := f"test exact {n}"):
            write(file := folder / f"exact{n}.csv", "independent", n)
            yield Goal(name, ["-m", "caltest", "test", str(file), "--null", "exact"], 0.7)
    for (test, n), goal in TEST_GOALS.items():
        if chosen(name := f"{test} {n}"):
            yield Goal(name, ["-c", TIMED.format(test=test, n=n)], goal, "ms")
    verbs = {
        "segments words": (["segments", "words", "--probs", "p"], 2.5),
        "compare five": (["compare", "models", "--probs", "m1,m2,m3,m4,m5"], 3.5),
        "compare two": (["compare", "models", "--probs", "m1,m2"], 2.0),
        "gate against": (
            ["gate", "one", "--against", "other", "--tolerance", "0.05", "--margin", "0.01"],
            2.0,
        ),
        "plan": (["plan", "--like", "one", "--probs", "p"], 2.5),
        "audit by 50": (["audit", "groups", "--by", "site"], 3.0),
    }
    paths = tables(folder) if any(map(chosen, verbs)) else {}
    for name, (words, goal) in verbs.items():
        if chosen(name):
            call = [str(paths.get(word, word)) for word in words]
            yield Goal(name, ["-m", "caltest", *call], goal)
    if chosen("example"):
        yield Goal("audit example", [*audit, *one], 0.9)
    if chosen("classes"):
        n = 5000 if quick else 50_000
        probs, rng = confident(n, 1000), np.random.default_rng(3)
        labels = (probs.cumsum(axis=1) > rng.random((n, 1))).argmax(axis=1)
        np.savez(folder / "classes.npz", probs=probs, labels=labels)
        yield Goal(
            f"audit classes {n}", [*audit, str(folder / "classes.npz"), *one], n / 50_000 * 20
        )
    if chosen("pattern"):
        pattern = parts(folder, 2, 10**6 if quick else 10**7)
        yield Goal("audit pattern of two files", [*audit, pattern, *one], 3.0)


def main(arguments: list[str]) -> None:
    """Print a line for every goal."""
    os.environ |= dict.fromkeys(ONE_THREAD, "1")
    folders = [str(Path(__file__).parents[1])]
    if "--against" in arguments:
        at = arguments.index("--against")
        folders.append(str(Path(arguments.pop(at + 1)).resolve()))
        arguments.pop(at)
    quick = "--quick" in arguments
    words = [word for word in arguments if not word.startswith("-")]
    heads = f"{'job':38s} {'CPU':>9s}    {'MB':>6s} {'goal':>7s} {'ratio':>6s}"
    print(heads + "  before     MB" * (len(folders) - 1))
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        for job in jobs(folder, words, quick):
            line = ""
            for place, path in enumerate(folders):
                cost, memory = measured(path, job, 1 if quick else 3)
                line += f" {cost:9.3f} {job.unit:2s} {memory:6.0f}"
                if place == 0:
                    line += f" {job.goal:7.1f} {cost / job.goal:6.2f}"
            print(f"{job.name:38s}{line}", flush=True)
        if not words or "rows" in words:
            scanned(folder, folders[0], 10**6 if quick else 10**7)
    if not words or "published" in words:
        resampled()


def measured(folder: str, job: Goal, repeats: int) -> tuple[float, float]:
    """Return the median CPU time, and most MB, of a job after one run that compiles.

    A single run is not warmed up.
    """
    answers = [asked(folder, job.call) for _ in range(repeats + (repeats > 1))][-repeats:]
    costs = [float(said) if job.unit == "ms" else cpu for cpu, _, said in answers]
    return median(costs), max(memory for _, memory, _ in answers)


def scanned(folder: Path, package: str, n: int) -> None:
    """Print what ten Parquet files of n rows take, as a multiple of DuckDB's grouping."""
    files = parts(folder, 10, n)
    base = {}
    for name, text in GROUPED.items():
        base[name], memory, _ = asked(package, ["-c", text.format(files=files)])
        print(f"{name + f' group by, {10 * n:.0e} rows':38s} {base[name]:9.3f} s  {memory:6.0f}")
    for verb, goal in SCAN_GOALS.items():
        cost, memory, _ = asked(package, ["-m", "caltest", verb, files, "--workers", "1"])
        ratio = cost / base["DuckDB"]
        name = f"{verb} rows {10 * n:.0e}"
        print(f"{name:38s} {cost:9.3f} s  {memory:6.0f} {goal:6.1f}× {ratio / goal:6.2f}")


def resampled() -> None:
    """Print ratios to C of the rows that are resampled as published."""
    from benchmarks.measure import seconds
    from benchmarks.redraw import anchor, jobs

    library = anchor()
    for job in jobs(quick=True):
        if job.name in RATIO_GOALS and job.c is not None and library is not None:
            ours, c = seconds(job.ours), seconds(partial(job.c, library))
            goal = RATIO_GOALS[job.name]
            line = f"{1e3 * ours:9.3f} ms {'':6s} {goal:6.1f}× {ours / c / goal:6.2f}"
            print(f"{job.name:38.38s} {line}")


if __name__ == "__main__":
    main(sys.argv[1:])
