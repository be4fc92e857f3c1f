"""How long a simulated null or bootstrap takes: an obvious NumPy loop, this package, tuned C.

CPU seconds of one thread for B = 1000 replicates, medians within one run, set-up from the
probabilities included. The loop is timed on a few replicates and scaled. Run:
``python -m benchmarks.redraw [--quick] [word …]``.
"""

from __future__ import annotations

import ctypes
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import caltest as ct
from benchmarks.measure import confident, seconds
from caltest.data.binning import as_binning
from caltest.statistics.binned import ClasswiseECE
from caltest.statistics.prepared import problem_of

B = 1000
#: A replicate, by NumPy and by hand.
Replicate = Callable[[np.random.Generator], float]


class Job(NamedTuple):
    """What is timed: a way to one replicate, the package, and C where there is a program."""

    name: str
    loop: Replicate
    ours: Callable[[], Any]
    c: Callable[[ctypes.CDLL], None] | None = None
    exact: Callable[[], Any] | None = None


def top(n: int) -> ct.Predictions:
    """Return ten-class predictions, with labels, seen through the top class."""
    labels = np.random.default_rng(1).integers(10, size=n)
    return ct.TopK(1)(ct.Predictions.of(confident(n, 10), labels))


def drawn(cumulative: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Draw a label for every row."""
    return (rng.random((len(cumulative), 1)) >= cumulative).sum(axis=1)


def redrawing(statistic: ct.ECE, probs: np.ndarray) -> Replicate:
    """Redraw labels and compute the error, as one would write it."""
    n, n_classes = probs.shape
    cells = np.unique(as_binning(statistic.bins)(probs), return_inverse=True)[1].ravel()
    sums = np.column_stack([np.bincount(cells, column) for column in probs.T])
    cumulative = probs.cumsum(axis=1)[:, :-1]

    def once(rng: np.random.Generator) -> float:
        flat = np.bincount(cells * n_classes + drawn(cumulative, rng), minlength=sums.size)
        return 0.5 * np.abs(flat.reshape(sums.shape) - sums).sum() / n

    return once


def classwise(probs: np.ndarray) -> Replicate:
    """Redraw labels and compute the error of every class."""
    n, n_classes = probs.shape
    cells = np.column_stack([ct.UniformBins(15)(column) for column in probs.T])
    sums = np.array([np.bincount(b, p, 15) for b, p in zip(cells.T, probs.T, strict=True)])
    cumulative = probs.cumsum(axis=1)[:, :-1]

    def once(rng: np.random.Generator) -> float:
        labels = drawn(cumulative, rng)
        hits = [np.bincount(cells[labels == k, k], minlength=15) for k in range(n_classes)]
        return np.abs(np.array(hits) - sums).sum() / n / n_classes

    return once


def resampled_classes(probs: np.ndarray) -> Replicate:
    """Resample rows, redraw their labels and compute the error of every class."""
    n, classes = len(probs), range(probs.shape[1])
    cells = np.column_stack([ct.UniformBins(15)(column) for column in probs.T])
    cumulative = probs.cumsum(axis=1)[:, :-1]

    def once(rng: np.random.Generator) -> float:
        rows = rng.integers(n, size=n)
        sample, labels = probs[rows], drawn(cumulative[rows], rng)
        gaps = [np.bincount(cells[rows, k], sample[:, k] - (labels == k)) for k in classes]
        return sum(np.abs(gap).sum() for gap in gaps) / n / len(classes)

    return once


def resampling(statistic: ct.ECE, data: ct.Predictions, with_labels: bool) -> Replicate:
    """Resample rows, redraw their labels or keep them, and compute the error."""
    probs, labels, fixed, bins = data.probs, data.labels, None, as_binning(statistic.bins)
    if isinstance(bins, ct.UniformBins):
        fixed = bins(probs)
    p, cumulative, classes = probs[:, 0], probs.cumsum(axis=1)[:, :-1], range(probs.shape[1])

    def binary(rng: np.random.Generator) -> float:
        rows = rng.integers(p.size, size=p.size)
        sample = p[rows]
        hits = labels[rows] == 0 if with_labels else rng.random(p.size) < sample
        cells = bins(sample) if fixed is None else fixed[rows]
        return np.abs(np.bincount(cells, sample - hits)).sum() / p.size

    def whole(rng: np.random.Generator) -> float:
        rows = rng.integers(p.size, size=p.size)
        sample = probs[rows]
        now = labels[rows] if with_labels else drawn(cumulative[rows], rng)
        cells = bins(sample) if fixed is None else fixed[rows]
        gaps = [np.bincount(cells, sample[:, k] - (now == k)) for k in classes]
        return 0.5 * np.abs(gaps).sum() / p.size

    return binary if len(classes) == 2 else whole


def anchor() -> ctypes.CDLL | None:
    """Compile the C file, if there is a compiler."""
    if shutil.which("gcc") is None:
        return None
    library = Path(tempfile.mkdtemp()) / "anchor.so"
    source = Path(__file__).with_name("anchor.c")
    flags = ["-O3", "-march=native", "-shared", "-fPIC"]
    subprocess.run(["gcc", *flags, str(source), "-o", str(library), "-lm"], check=True)
    return ctypes.CDLL(str(library))


def as_seen(probs: np.ndarray) -> ct.Predictions:
    """Return predictions as a lens would show them; their labels do not matter."""
    return ct.Predictions(probs, np.zeros(len(probs), dtype=np.int64), induced=True)


def run(function: Any, arrays: list[Any], sizes: list[int], replicates: int = B) -> None:
    """Call a C program: arrays, sizes, the number of replicates, a seed, room for the answer."""
    kept = [None if a is None else np.ascontiguousarray(a) for a in arrays]
    out = np.empty(replicates)
    pointers = [None if a is None else a.ctypes.data_as(ctypes.c_void_p) for a in kept]
    tail = [ctypes.c_int64(v) for v in (*sizes, replicates)]
    function(*pointers, *tail, ctypes.c_uint64(1), out.ctypes.data_as(ctypes.c_void_p))


def alias_tables(library: ctypes.CDLL, probs: np.ndarray) -> list[np.ndarray]:
    """Return the tables of Vose's method."""
    tables = [np.empty(probs.shape, dtype=np.uint32), np.empty(probs.shape, dtype=np.int32)]
    probs = np.ascontiguousarray(probs)
    pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in (probs, *tables)]
    library.alias_tables(pointers[0], *map(ctypes.c_int64, probs.shape), *pointers[1:])
    return tables


def redraw_in_c(statistic: ct.ECE, probs: np.ndarray, library: ctypes.CDLL) -> None:
    """Threshold ladders for few classes, alias tables for many."""
    fixed = statistic.prepare(problem_of(as_seen(probs)))
    cells = fixed.cells
    sums = cells.sum(probs)
    n, n_classes = probs.shape
    grouped = probs[cells.order]
    sizes = [n, len(cells), n_classes]
    if n_classes <= 40:
        cumulative = np.cumsum(grouped, axis=1)[:, :-1] * 2.0**32
        thresholds = np.minimum(cumulative, 2.0**32 - 1).astype(np.uint32)
        run(library.ladder, [thresholds, cells.starts, sums], sizes, -(-B // 64) * 64)
        return
    tables = alias_tables(library, grouped)
    run(library.alias, [*tables, cells.starts, sums, sums.sum(axis=1)], sizes)


def classwise_in_c(probs: np.ndarray, library: ctypes.CDLL) -> None:
    """Alias tables, and a table of events."""
    cells = ClasswiseECE().prepare(problem_of(as_seen(probs)))
    cell, starts = cells.cell.astype(np.int32), cells.starts.astype(np.int64)
    sums = np.bincount(cell.ravel(), probs.ravel())
    arrays = [*alias_tables(library, probs), cell, starts, sums]
    run(library.classwise, arrays, list(probs.shape))


def classes_in_c(probs: np.ndarray, library: ctypes.CDLL) -> None:
    """Poisson counts in 256 lanes, and a table of gaps of every class."""
    cells = ClasswiseECE().prepare(problem_of(as_seen(probs)))
    arrays = [probs, cells.cell.astype(np.int32), None]
    sizes = [len(probs), int(cells.starts[-1]), probs.shape[1]]
    run(library.tile_classes, arrays, sizes, -(-B // 256) * 256)


def grid_in_c(probs: np.ndarray, library: ctypes.CDLL) -> None:
    """Poisson counts in 256 lanes, and the gaps of one cell after the other."""
    cells = ct.ECE(10).prepare(problem_of(as_seen(probs))).cells
    arrays, sizes = (
        [probs[cells.order], None, cells.starts],
        [len(probs), len(cells), probs.shape[1]],
    )
    run(library.tile_classes, arrays, sizes, -(-B // 256) * 256)


def tile_in_c(data: ct.Predictions, with_labels: bool, library: ctypes.CDLL) -> None:
    """Poisson counts in 256 lanes."""
    cells = ct.ECE(15).prepare(problem_of(data)).cells
    hit = (data.labels == 0).astype(np.uint8)[cells.order] if with_labels else None
    arrays = [data.probs[cells.order, 0], hit, cells.starts]
    run(library.tile, arrays, [data.n, len(cells)], -(-B // 256) * 256)


def equal_mass_in_c(data: ct.Predictions, library: ctypes.CDLL) -> None:
    """Counts of sorted rows, and a sweep over them."""
    ordered = data.probs[np.argsort(data.probs[:, 0])]
    run(library.equal_mass, [ordered[:, 0], *alias_tables(library, ordered)], [data.n, 15])


def tree_in_c(probs: np.ndarray, library: ctypes.CDLL) -> None:
    """Counts of rows in the order of the data, and a tree of them."""
    run(library.tree, [probs, *alias_tables(library, probs)], [*probs.shape, 100])


def redraws(statistic: Any, probs: np.ndarray) -> None:
    """Prepare and run the replicates of this package with redrawn labels."""
    ct.replicate(as_seen(probs), statistic, ct.RedrawLabels(), n_resamples=B, rng=1)


def resamples(statistic: ct.ECE | ClasswiseECE, data: ct.Predictions, with_labels: bool) -> None:
    """The same with resampled rows."""
    scheme = ct.Bootstrap() if with_labels else ct.ConsistencyResampling()
    ct.replicate(data, statistic, scheme, n_resamples=B, rng=1)


def jobs(quick: bool) -> Iterator[Job]:
    """List what is timed."""
    sizes = [10**4] if quick else [10**4, 10**5, 10**6]
    for n in sizes:
        ece, data = ct.ECE(15), top(n)
        whole = ct.Predictions(confident(n, 10), np.zeros(n, dtype=np.int64))
        yield Job(
            f"labels, top-1, 15 bins, n={n:.0e}", redrawing(ece, data.probs),
            partial(redraws, ece, data.probs), partial(redraw_in_c, ece, data.probs),
            partial(ct.calibration_test, whole, None, ece, null="exact"),
        )  # fmt: skip
    grid, tree = ct.ECE(10), ct.ECE(ct.VarianceTree(100))
    cases = [(grid, 3), (tree, 3), (grid, 10), (tree, 10), (tree, 100), (tree, 1000)]
    for statistic, k in cases[: 5 if quick else 6]:
        probs = confident(10**4, k)
        yield Job(
            f"labels, {statistic.bins!r}, K={k}", redrawing(statistic, probs),
            partial(redraws, statistic, probs), partial(redraw_in_c, statistic, probs),
        )  # fmt: skip
    for k in (10, 100) if quick else (10, 100, 1000):
        probs = confident(10**4, k)
        yield Job(
            f"labels, class-wise, K={k}", classwise(probs),
            partial(redraws, ClasswiseECE(), probs), partial(classwise_in_c, probs),
        )  # fmt: skip
    for with_labels in (False, True):
        scheme = "bootstrap" if with_labels else "published"
        for n in sizes:
            ece, data = ct.ECE(15), top(n)
            yield Job(
                f"{scheme}, top-1, 15 bins, n={n:.0e}", resampling(ece, data, with_labels),
                partial(resamples, ece, data, with_labels), partial(tile_in_c, data, with_labels),
            )  # fmt: skip
    probs = confident(10**4, 10)
    yield Job(
        "published, class-wise, K=10", resampled_classes(probs),
        partial(resamples, ClasswiseECE(), as_seen(probs), False),
        partial(classes_in_c, probs),
    )  # fmt: skip
    data, equal = top(10**4), ct.ECE(ct.QuantileBins(15))
    yield Job(
        "published, top-1, equal mass", resampling(equal, data, False),
        partial(resamples, equal, data, False), partial(equal_mass_in_c, data),
    )  # fmt: skip
    by_mean = ct.ECE(ct.VarianceTree(100, split="mean"))
    for statistic, k in [(grid, 3), (grid, 10), (by_mean, 3), (by_mean, 10), (tree, 3), (tree, 10)]:
        data = as_seen(confident(10**4, k))
        programs = {
            grid.bins: partial(grid_in_c, data.probs), by_mean.bins: partial(tree_in_c, data.probs)
        }  # fmt: skip
        yield Job(
            f"published, {statistic.bins!r}, K={k}", resampling(statistic, data, False),
            partial(resamples, statistic, data, False),
            programs.get(statistic.bins),
        )  # fmt: skip


def repeated(once: Replicate, times: int) -> None:
    """Make so many replicates."""
    rng = np.random.default_rng(0)
    for _ in range(times):
        once(rng)


def main() -> None:
    """Time every job, or those whose names contain a word given, and print a table."""
    words = [word for word in sys.argv[1:] if word != "--quick"]
    library = anchor()
    heads = ["NumPy", "ours", "C", "NumPy/ours", "ours/C", "exact"]
    print(f"{'ms, B = 1000':44}" + "".join(f"{head:>11}" for head in heads))
    for job in jobs("--quick" in sys.argv[1:]):
        if words and not any(word in job.name for word in words):
            continue
        ours = seconds(job.ours)
        few = int(max(3, min(100, 0.3 / seconds(partial(repeated, job.loop, 2), 1))))
        loop = B / few * seconds(partial(repeated, job.loop, few), 3)
        c = seconds(partial(job.c, library)) if job.c and library else np.nan
        shown = [f"{1e3 * t:11.1f}" for t in (loop, ours, c)]
        shown += [f"{loop / ours:11.0f}", f"{ours / c:11.2f}"]
        shown += [f"{1e3 * seconds(job.exact, 3):11.1f}"] if job.exact else []
        print(f"{job.name:44}" + "".join(shown), flush=True)


if __name__ == "__main__":
    main()
