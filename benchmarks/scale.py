"""Any number of rows: seconds and memory, beside NumPy, beside the answers of rows, beside aims.

``python -m benchmarks.scale [--folder F] [--powers 3] [TABLE …]`` prints the tables of
``docs/scale.md`` and ``docs/performance.md``: batches, verbs, processes, aims. Files of up to 10⁷
rows are written into a folder (by default a temporary one) and read again and again. With
``CALTEST_DATA``, a folder of real predictions, the rows that need them are measured, too.
"""

from __future__ import annotations

import argparse
import os
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from unittest.mock import patch

import numpy as np

import caltest as ct
from benchmarks.measure import confident, seconds
from caltest.statistics.binned import ClasswiseECE

#: Rows of the file that is read many times.
ROWS = 10**7
COMMAND = """
import resource, sys
from pathlib import Path
import caltest as ct
from caltest import cli
try:
    {job}
except SystemExit as end:
    if end.code and end.code != 1:
        raise
finally:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    status = dict(line.split(":") for line in Path("/proc/self/status").read_text().splitlines())
    cpu = sum(u.ru_utime + u.ru_stime for u in used)
    print(cpu, int(status["VmHWM"].split()[0]) // 1024, file=sys.stderr)
"""


def alone(job: str) -> tuple[float, float, int]:
    """Return wall seconds, CPU seconds and peak MB of a process that does one thing."""
    start = time.perf_counter()
    done = subprocess.run(
        [sys.executable, "-c", COMMAND.format(job=job)], capture_output=True, text=True, check=True
    )
    cpu, memory = done.stderr.split()[-2:]
    return time.perf_counter() - start, float(cpu), int(memory)


def written(folder: Path, n: int = ROWS, part: int = 0) -> Path:
    """Write a Parquet file of two-class rows, once."""
    import pyarrow
    import pyarrow.parquet

    path = folder / f"rows-{n}-{part:03d}.parquet"
    if not path.exists():
        rng = np.random.default_rng(part)
        p = rng.beta(0.3, 0.6, n)
        table = pyarrow.table({"p": p, "y": (rng.random(n) < p).astype(np.int64)})
        pyarrow.parquet.write_table(table, path)
    return path


def parts(folder: Path, n: int, count: int) -> str:
    """Return a pattern of so many files, each with rows of its own."""
    for old in folder.glob("part-*"):
        old.unlink()
    for j in range(count):
        (folder / f"part-{j:03d}.parquet").symlink_to(written(folder, n, j))
    return str(folder / "part-*.parquet")


def one_sum(p: np.ndarray, y: np.ndarray) -> None:
    """Count events in 15 bins."""
    np.bincount((p * 15).astype(np.int64), y, 16)


def three_sums(p: np.ndarray, y: np.ndarray) -> None:
    """Add up all that an ECE takes."""
    cell = np.minimum((p * 15).astype(np.int64), 14)
    np.bincount(cell), np.bincount(cell, p), np.bincount(cell, y)


def batch_times() -> dict[str, list[float]]:
    """Return seconds of one bincount, of an ECE by NumPy and of a tally, of 2·10⁶ rows."""
    rng, n, times = np.random.default_rng(0), 2 * 10**6, {}
    for name, p in {
        "uniform": rng.random(n),
        "Beta(0.05, 0.5)": rng.beta(0.05, 0.5, n),
        "two decimals": rng.random(n).round(2),
    }.items():
        data = ct.Predictions.of(p, (rng.random(n) < p).astype(int))
        y = data.labels.astype(np.float64)

        jobs = partial(one_sum, p, y), partial(three_sums, p, y), partial(ct.Tally.of, data)
        times[name] = [seconds(job) for job in jobs]
    return times


def batches() -> None:
    """Print what a batch of 2·10⁶ rows costs."""
    print("| rows | one bincount | ECE by NumPy | Tally | ns a row | Tally / bincount |")
    print("|---|--:|--:|--:|--:|--:|")
    for name, times in batch_times().items():
        shown = " | ".join(f"{1e3 * t:.0f} ms" for t in times)
        print(f"| {name} | {shown} | {times[2] / 2e6 * 1e9:.0f} | {times[2] / times[0]:.1f} |")


def verbs() -> None:
    """Print what answers cost from a tally and, without sums on their own account, from rows."""
    asked: dict[str, Callable[..., object]] = {
        "exact ECE": partial(ct.calibration_test, statistic=ct.ECE()),
        "interval": partial(ct.confidence_interval, rng=1),
        "drawn, B = 1999": partial(
            ct.calibration_test, statistic=ct.DebiasedL2(), n_resamples=1999, rng=1
        ),
    }
    heads = ["n", "tally", *asked, "audit", *(f"rows: {name}" for name in asked)]
    print(f"\n| {' | '.join(heads)} |\n|{'--:|' * len(heads)}")
    for n in (10**4, 10**5, 10**6, 10**7):
        rng = np.random.default_rng(1)
        p = rng.beta(0.3, 0.6, n)
        data = ct.Predictions.of(p, (rng.random(n) < p).astype(int))
        tally = ct.Tally.of(data)
        times = [seconds(partial(ct.Tally.of, data), 3)]
        times += [seconds(partial(verb, tally), 3) for verb in asked.values()]
        times.append(seconds(partial(ct.audit, tally, rng=1), 3))
        with patch("caltest.inference._input.ROWS_FOR_SUMS", 10**9):
            few = asked.values() if n <= 10**6 else ()
            times += [seconds(partial(verb, data), 3 if n < 10**6 else 1) for verb in few]
        shown = [f"{1e3 * t:.0f} ms" for t in times] + ["–"] * (len(heads) - 1 - len(times))
        print(f"| {n:.0e} | {' | '.join(shown)} |", flush=True)


def processes(folder: Path, powers: int) -> None:
    """Print whole processes."""
    print("\n| process | wall s | CPU s | peak MB |\n|---|--:|--:|--:|")
    for name, job in {
        "`import caltest`, and `ct.Predictions`": "ct.Predictions",
        "`caltest audit`, 2·10⁶ rows": f"cli.main(['audit', {parts(folder, 2 * 10**6, 1)!r}])",
    }.items():
        print("| {} | {:.1f} | {:.1f} | {} |".format(name, *alone(job)))
    for copies in [1, 10, 100][:powers]:
        job = f"cli.main(['audit', {parts(folder, ROWS, copies)!r}])"
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
    import dask.dataframe as dataframe
    import distributed

    large, one = written(folder), None
    print("\n| rows | wall s | CPU s of workers | peak MB of a worker | of the client |")
    print("|--:|--:|--:|--:|--:|")
    for copies in [10, 20, 40, 100][: powers + 1]:
        pattern = parts(folder, ROWS, copies)
        with (
            distributed.LocalCluster(
                n_workers=2, threads_per_worker=1, dashboard_address=":0"
            ) as cluster,
            distributed.Client(cluster) as client,
        ):
            client.run(__import__, "caltest.tallies.tally", fromlist=["of_frame"])
            before = sum(cpu for cpu, _ in client.run(spent).values())
            start = time.perf_counter()
            tally = ct.Tally.from_dask(dataframe.read_parquet(pattern), "p", "y")
            wall, after = time.perf_counter() - start, list(client.run(spent).values())
            cpu, peak = sum(cpu for cpu, _ in after) - before, max(mb for _, mb in after)
        one = ct.scan(large) if one is None else one
        assert tally == sum([one] * copies)
        print(f"| {copies} × 10⁷ | {wall:.1f} | {cpu:.1f} | {peak} | {spent()[1]} |", flush=True)


def stored(folder: Path, n: int, n_classes: int) -> Path:
    """Write predictions of many classes, and of two as the probability of the event, once."""
    path = folder / f"{n}-by-{n_classes}.npz"
    if not path.exists():
        rng = np.random.default_rng(0)
        if n_classes == 2:
            probs = rng.beta(0.3, 0.6, n)
            labels = (rng.random(n) < probs).astype(np.int64)
        else:
            probs = confident(n, n_classes)
            drawn = (probs.cumsum(axis=1) < rng.random((n, 1))).sum(axis=1)
            labels = np.minimum(drawn, n_classes - 1)
        np.savez(path, probs=probs, labels=labels)
    return path


def process(*words: str) -> str:
    """Return CPU seconds and peak memory of ``caltest`` as a process."""
    _, cpu, memory = alone(f"cli.main({[*words]!r})")
    return f"{cpu:.1f} s, {memory} MB"


def on_dask(pattern: str) -> str:
    """Return wall seconds of two worker processes, and the peak memory of the one that asks."""
    job = (
        "from dask.distributed import Client; import dask.dataframe as dd; "
        "client = Client(n_workers=2, threads_per_worker=1, dashboard_address=None); "
        f"ct.audit(ct.Tally.from_dask(dd.read_parquet({pattern!r}), probs='p', label='y')); "
        "client.close()"
    )
    wall, cpu, memory = alone(job)
    return f"{wall:.0f} s wall, {cpu:.0f} s CPU, {memory} MB"


def real(name: str) -> tuple[Path, list[Path]]:
    """Return a file of real predictions, and ten of them."""
    folder = Path(os.environ.get("CALTEST_DATA", "")) / "multiclass"
    return folder / f"{name}.npz", sorted(folder.glob("cifar*.npz"))[:10]


def exact_top() -> str:
    """Return the range of milliseconds of the exact test of top-1 confidences of ten networks."""
    times = []
    for path in real("")[1]:
        with np.load(path) as file:
            data = ct.Predictions.of(file["probs"][: 10**4], file["labels"][: 10**4])
        times.append(1e3 * seconds(partial(ct.calibration_test, data, lens=ct.TopK(1)), 3))
    return f"{min(times):.1f} to {max(times):.1f} ms on {len(times)}" if times else "–"


def class_wise() -> str:
    """Return seconds of published resampling, and how they compare with C."""
    from benchmarks.redraw import anchor, classes_in_c

    probs, library = confident(10**4, 10), anchor()
    data = ct.Predictions(probs, np.zeros(10**4, dtype=np.int64))
    published = ct.ConsistencyResampling()
    ours = seconds(
        partial(ct.replicate, data, ClasswiseECE(), published, n_resamples=1000, rng=1), 3
    )
    c = seconds(partial(classes_in_c, probs, library), 3) if library else np.nan
    return f"{ours:.2f} s, {ours / c:.2f} × C"


def kernel_error() -> str:
    """Return seconds of 1000 redrawn labels of the kernel error of whole vectors."""
    data = ct.Predictions(confident(10**4, 10), np.zeros(10**4, dtype=np.int64))
    job = partial(ct.replicate, data, ct.SKCE(), ct.RedrawLabels(), n_resamples=1000, rng=1)
    return f"{seconds(job, 1):.1f} s"


def ratios() -> str:
    """Return how often a tally takes as long as one bincount."""
    return ", ".join(f"{t[2] / t[0]:.1f} × ({name})" for name, t in batch_times().items())


def aims(folder: Path, powers: int) -> None:
    """Print what was aimed at, and what is."""
    network = str(real("cifar10_googlenet")[0])
    known = Path(network).exists()

    def audit(n: int, n_classes: int) -> str:
        return process("audit", str(stored(folder, n, n_classes)))

    def parquet(n: int, copies: int) -> str:
        return process("audit", parts(folder, n, copies))

    def large() -> str:
        wall, cpu, memory = alone(f"cli.main(['audit', {parts(folder, ROWS, 10)!r}])")
        return f"{wall:.0f} s wall, {cpu:.0f} s CPU, {memory} MB"

    rows: list[tuple[str, str, str, Callable[[], str]]] = [
        ("`caltest audit`, embedded example", "2.6 s", "≤ 1.0 s", partial(process, "audit")),
        ("`caltest audit`, 10⁴ × 10, GoogLeNet", "4.5 s", "≤ 1.0 s",
         lambda: process("audit", network) if known else "–"),
        ("`caltest test` of the same", "1.0 s", "≤ 0.5 s",
         lambda: process("test", network) if known else "–"),
        ("`caltest audit`, 2·10⁶ × 2, npz", "454 s", "≤ 4 s", partial(audit, 2 * 10**6, 2)),
        ("the same, Parquet", "454 s", "≤ 4 s", partial(parquet, 2 * 10**6, 1)),
        ("`caltest audit`, 3·10⁵ × 10", "140 s", "≤ 6 s", partial(audit, 3 * 10**5, 10)),
        ("`caltest audit`, 50 000 × 1000", "–", "≤ 40 s, 3 GB", partial(audit, 50_000, 1000)),
        ("tally of one batch", "–", "≤ 3 × bincount", ratios),
        ("`caltest audit`, 10⁸ rows, Parquet", "–", "≤ 60 s wall, 500 MB", large),
        ("10⁹ rows, Dask, 2 workers", "–", "linear, memory flat",
         lambda: on_dask(parts(folder, ROWS, 100)) if powers > 2 else "–"),
        ("exact top-1 p-value, 10⁴ rows, ten networks", "9 to 53 ms", "≤ 10 ms", exact_top),
        ("class-wise, published, K = 10, B = 1000", "15.9 s", "≤ 2 × C", class_wise),
        ("SKCE, 10⁴ × 10, B = 1000", "4.9 s", "≤ 2.5 s", kernel_error),
    ]  # fmt: skip
    print("\n| work | version 0.1 | aim | measured |\n|---|--:|--:|--:|")
    for name, before, aim, measure in rows:
        print(f"| {name} | {before} | {aim} | {measure()} |", flush=True)


def main() -> None:
    """Print all tables, or those that are named."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("tables", nargs="*", default=["batches", "verbs", "processes", "aims"])
    parser.add_argument("--folder", type=Path, help="Where files are kept.")
    parser.add_argument("--powers", type=int, default=2, help="3 reads 10⁹ rows, some minutes.")
    asked = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        folder = (asked.folder or Path(temporary)).resolve()
        all_of_them: dict[str, Callable[[], None]] = {
            "batches": batches,
            "verbs": verbs,
            "processes": partial(processes, folder, asked.powers),
            "aims": partial(aims, folder, asked.powers),
            "workers": partial(workers, folder, asked.powers),
        }
        for name in asked.tables:
            all_of_them[name]()


if __name__ == "__main__":
    main()
