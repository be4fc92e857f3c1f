"""Tallies: seconds and memory, beside NumPy and beside the answers of rows.

``python -m benchmarks.scale [FOLDER] [--rows 8]`` writes files of 10⁷ rows into a folder (by
default a temporary one), reads them again and again, and prints the tables of ``docs/scale.md``.
"""

from __future__ import annotations

import argparse
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

import caltest as ct
from benchmarks.measure import seconds

#: Rows of the file that is read many times.
ROWS = 10**7
COMMAND = """
import resource, sys
from pathlib import Path
import caltest as ct
from caltest import cli
try:
    {job}
except SystemExit:
    pass
finally:
    own = resource.getrusage(resource.RUSAGE_SELF)
    status = dict(line.split(":") for line in Path("/proc/self/status").read_text().splitlines())
    print(own.ru_utime + own.ru_stime, int(status["VmHWM"].split()[0]) // 1024, file=sys.stderr)
"""


def alone(job: str) -> tuple[float, float, int]:
    """Return wall seconds, CPU seconds and peak MB of a process that does one thing."""
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", COMMAND.format(job=job)], capture_output=True, text=True, check=True
    )
    cpu, memory = done.stderr.split()[-2:]
    return time.perf_counter() - start, float(cpu), int(memory)


def written(folder: Path, n: int = ROWS) -> Path:
    """Write a Parquet file of two-class rows, once."""
    import pyarrow
    import pyarrow.parquet

    path = folder / f"rows-{n}.parquet"
    if not path.exists():
        rng = np.random.default_rng(0)
        p = rng.beta(0.3, 0.6, n)
        table = pyarrow.table({"p": p, "y": (rng.random(n) < p).astype(np.int64)})
        pyarrow.parquet.write_table(table, path)
    return path


def links(path: Path, copies: int) -> str:
    """Return a pattern of so many names of one file."""
    for old in path.parent.glob("part-*"):
        old.unlink()
    for j in range(copies):
        (path.parent / f"part-{j:03d}.parquet").symlink_to(path)
    return str(path.parent / "part-*.parquet")


def batches() -> None:
    """Print what a batch of 2·10⁶ rows costs."""
    rng, n = np.random.default_rng(0), 2 * 10**6
    print("| rows | one bincount | ECE by NumPy | Tally | ns a row |\n|---|--:|--:|--:|--:|")
    for name, p in {
        "uniform": rng.random(n),
        "Beta(0.05, 0.5)": rng.beta(0.05, 0.5, n),
        "two decimals": rng.random(n).round(2),
    }.items():
        data = ct.Predictions.of(p, (rng.random(n) < p).astype(int))
        y = data.labels.astype(np.float64)

        def one(p=p, y=y):
            return np.bincount((p * 15).astype(np.int64), y, 16)

        def three(p=p, y=y):
            cell = np.minimum((p * 15).astype(np.int64), 14)
            return np.bincount(cell), np.bincount(cell, p), np.bincount(cell, y)

        times = [seconds(job) for job in (one, three, lambda data=data: ct.Tally.of(data))]
        shown = " | ".join(f"{1e3 * t:.0f} ms" for t in times)
        print(f"| {name} | {shown} | {times[-1] / n * 1e9:.0f} |")


def verbs() -> None:
    """Print what answers cost from a tally and from the rows."""
    print("\n| n | tally, then | exact ECE | interval | audit | rows: exact ECE | interval |")
    print("|--:|--:|--:|--:|--:|--:|--:|")
    for n in (10**4, 10**5, 10**6, 10**7):
        rng = np.random.default_rng(1)
        p = rng.beta(0.3, 0.6, n)
        data = ct.Predictions.of(p, (rng.random(n) < p).astype(int))
        tally = ct.Tally.of(data)
        jobs = [
            lambda data=data: ct.Tally.of(data),
            lambda tally=tally: ct.calibration_test(tally),
            lambda tally=tally: ct.confidence_interval(tally, rng=1),
            lambda tally=tally: ct.audit(tally, rng=1),
        ]
        if n <= 10**6:
            jobs += [
                lambda data=data: ct.calibration_test(data),
                lambda data=data: ct.confidence_interval(data, rng=1),
            ]
        shown = [f"{1e3 * seconds(job, 3):.0f} ms" for job in jobs]
        print(f"| {n:.0e} | {' | '.join(shown + ['–'] * (6 - len(shown)))} |")


def processes(folder: Path, powers: int) -> None:
    """Print whole processes."""
    small, large = written(folder, 2 * 10**6), written(folder)
    print("\n| process | wall s | CPU s | peak MB |\n|---|--:|--:|--:|")
    for name, job in {
        "`import caltest`": "ct.Predictions",
        "`caltest audit`, 2·10⁶ rows": f"cli.main(['audit', {links(small, 1)!r}])",
    }.items():
        print("| {} | {:.1f} | {:.1f} | {} |".format(name, *alone(job)))
    for copies in [1, 10, 100][:powers]:
        job = f"cli.main(['audit', {links(large, copies)!r}])"
        print(
            f"| `caltest audit`, {copies} × 10⁷ rows | {{:.1f}} | {{:.1f}} | {{}} |".format(
                *alone(job)
            )
        )


def spent() -> tuple[float, int]:
    """Return CPU seconds and peak MB of this process."""
    own = resource.getrusage(resource.RUSAGE_SELF)
    status = dict(line.split(":") for line in Path("/proc/self/status").read_text().splitlines())
    return own.ru_utime + own.ru_stime, int(status["VmHWM"].split()[0]) // 1024


def workers(folder: Path, powers: int) -> None:
    """Print what reading by two workers of Dask costs; each number of files in a cluster anew."""
    import distributed

    large, one = written(folder), None
    print("\n| rows | wall s | CPU s of workers | peak MB of a worker | of the client |")
    print("|--:|--:|--:|--:|--:|")
    for copies in [10, 20, 40, 100][: powers + 1]:
        pattern = links(large, copies)
        with (
            distributed.LocalCluster(
                n_workers=2, threads_per_worker=1, dashboard_address=":0"
            ) as cluster,
            distributed.Client(cluster) as client,
        ):
            client.run(__import__, "caltest.tally.dask", fromlist=["by_workers"])
            before = sum(cpu for cpu, _ in client.run(spent).values())
            start = time.perf_counter()
            found = ct.scan(pattern, scheduler=client)
            wall, after = time.perf_counter() - start, list(client.run(spent).values())
            cpu, peak = sum(cpu for cpu, _ in after) - before, max(mb for _, mb in after)
        one = ct.scan(large) if one is None else one
        assert found == sum([one] * copies)
        print(f"| {copies} × 10⁷ | {wall:.1f} | {cpu:.1f} | {peak} | {spent()[1]} |", flush=True)


def main() -> None:
    """Print all tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", nargs="?", type=Path)
    parser.add_argument("--powers", type=int, default=2, help="3 reads 10⁹ rows, some minutes.")
    parser.add_argument("--processes", action="store_true", help="Only whole processes.")
    parser.add_argument("--workers", action="store_true", help="Only workers of Dask.")
    asked = parser.parse_args()
    if not (asked.processes or asked.workers):
        batches()
        verbs()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (asked.folder or Path(temporary)).resolve()
        if asked.workers:
            workers(folder, asked.powers)
        else:
            processes(folder, asked.powers)


if __name__ == "__main__":
    main()
