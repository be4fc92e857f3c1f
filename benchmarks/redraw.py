"""How long redrawing labels takes: an obvious NumPy loop, this package, and tuned C.

CPU seconds of one thread for B = 1000 replicates, medians within one run, set-up from the
probabilities included. The loop is timed on a few replicates and scaled. Run:
``python benchmarks/redraw.py [--quick]``.
"""

from __future__ import annotations

import ctypes
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import caltest as ct
from caltest.statistics.lanes import CellRedraws, CellResamples

B = 1000
SEED = (1, 2)


def seconds(job: Callable[[], Any], repeats: int = 5) -> float:
    """Return the median CPU time of a call, after one that warms up."""
    job()
    times = []
    for _ in range(repeats):
        start = time.process_time()
        job()
        times.append(time.process_time() - start)
    return statistics.median(times)


def softmax(n: int, n_classes: int) -> np.ndarray:
    """Return confident predictions."""
    rng = np.random.default_rng(0)
    logits = rng.normal(scale=1.5, size=(n, n_classes))
    logits[np.arange(n), rng.integers(n_classes, size=n)] += 4.0
    probs = np.exp(logits - logits.max(axis=1, keepdims=True))
    return probs / probs.sum(axis=1, keepdims=True)


def numpy_loop(statistic: ct.ECE, probs: np.ndarray, replicates: int) -> None:
    """Redraw labels and compute the error, as one would write it."""
    rng = np.random.default_rng(0)
    n, n_classes = probs.shape
    cells = np.unique(statistic.bins(probs), return_inverse=True)[1].ravel()
    sums = np.column_stack([np.bincount(cells, column) for column in probs.T])
    cumulative = probs.cumsum(axis=1)[:, :-1]
    for _ in range(replicates):
        labels = (rng.random((n, 1)) >= cumulative).sum(axis=1)
        flat = np.bincount(cells * n_classes + labels, minlength=sums.size)
        0.5 * np.abs(flat.reshape(sums.shape) - sums).sum() / n


def ours(statistic: ct.ECE, probs: np.ndarray) -> None:
    """Prepare and run the compiled redraws."""
    CellRedraws.of(statistic.given(probs), probs).replicates(SEED, 0, B)


def numpy_resampling(statistic: ct.ECE, probs: np.ndarray, replicates: int) -> None:
    """Bootstrap the predictions, redraw labels and compute the error, as one would write it."""
    rng = np.random.default_rng(0)
    p = probs[:, 0]
    cells = statistic.bins(probs)
    for _ in range(replicates):
        rows = rng.integers(p.size, size=p.size)
        gaps = p[rows] - (rng.random(p.size) < p[rows])
        np.abs(np.bincount(cells[rows], gaps)).sum() / p.size


def our_resampling(statistic: ct.ECE, probs: np.ndarray) -> None:
    """Prepare and run the compiled bootstrap."""
    CellResamples.of(statistic.given(probs), probs, probs).replicates(SEED, 0, B)


def anchor() -> ctypes.CDLL | None:
    """Compile the C file, if there is a compiler."""
    if shutil.which("gcc") is None:
        return None
    library = Path(tempfile.mkdtemp()) / "anchor.so"
    source = Path(__file__).with_name("anchor.c")
    flags = ["-O3", "-march=native", "-shared", "-fPIC"]
    subprocess.run(["gcc", *flags, str(source), "-o", str(library), "-lm"], check=True)
    return ctypes.CDLL(str(library))


def in_c(library: ctypes.CDLL, statistic: ct.ECE, probs: np.ndarray) -> None:
    """Run the C anchor: threshold ladders for few classes, alias tables for many."""
    cells = statistic.given(probs)
    n, n_classes = probs.shape
    grouped = np.ascontiguousarray(probs[cells.order])
    out = np.empty(-(-B // 64) * 64)
    sizes = [ctypes.c_int64(v) for v in (n, cells.starts.size - 1, n_classes, out.size)]
    tail = [*sizes, ctypes.c_uint64(1), _pointer(out)]
    common = [_pointer(cells.starts), _pointer(cells.sums)]
    if n_classes <= 40:
        cumulative = np.cumsum(grouped, axis=1)[:, :-1] * 2.0**32
        thresholds = np.minimum(cumulative, 2.0**32 - 1).astype(np.uint32)
        library.ladder(_pointer(thresholds), *common, *tail)
        return
    thresholds = np.empty(probs.shape, dtype=np.uint32)
    other = np.empty(probs.shape, dtype=np.int32)
    library.alias_tables(
        _pointer(grouped), sizes[0], sizes[2], _pointer(thresholds), _pointer(other)
    )
    untouched = cells.sums.sum(axis=1)
    library.alias(_pointer(thresholds), _pointer(other), *common, _pointer(untouched), *tail)


def resampling_in_c(library: ctypes.CDLL, statistic: ct.ECE, probs: np.ndarray) -> None:
    """Run the C anchor of the bootstrap."""
    cells = statistic.bins(probs)
    entries = (probs[:, 0] * 2.0**32).astype(np.uint64) << np.uint64(8) | cells.astype(np.uint64)
    sizes = [ctypes.c_int64(v) for v in (len(probs), cells.max() + 1, B)]
    library.packed(_pointer(entries), *sizes, ctypes.c_uint64(1), _pointer(np.empty(B)))


def _pointer(array: np.ndarray) -> ctypes.c_void_p:
    return array.ctypes.data_as(ctypes.c_void_p)


def exact(data: ct.Predictions) -> None:
    """Compute the null of the top-label error, without replicates."""
    ct.calibration_test(data, statistic=ct.ECE(15), lens=ct.TopK(1), null="exact")


def jobs(quick: bool) -> list[tuple[str, ct.ECE, np.ndarray, Callable[[], None] | None]]:
    """List what is timed: name, statistic, probabilities, and another way to the answer."""
    listed = []
    for n in [10**4] if quick else [10**4, 10**5, 10**6]:
        probs = softmax(n, 10)
        data = ct.Predictions.of(probs, np.zeros(n, dtype=np.int64))
        top = ct.TopK(1)(data).probs
        listed.append((f"top-1, 15 bins, n={n:.0e}", ct.ECE(15), top, partial(exact, data)))
    for n_classes in [3, 10]:
        grid, tree = ct.ECE(ct.UniformBins(10)), ct.ECE(ct.VarianceTree(100))
        probs = softmax(10**4, n_classes)
        listed.append((f"grid of 10 per axis, K={n_classes}", grid, probs, None))
        listed.append((f"variance tree, K={n_classes}", tree, probs, None))
    for n_classes in [100] if quick else [100, 1000]:
        tree = ct.ECE(ct.VarianceTree(100))
        listed.append((f"variance tree, K={n_classes}", tree, softmax(10**4, n_classes), None))
    return listed


def timed(loop: Any, mine: Any, draws: Any, c: Any, repeats: int, few: int) -> list[float]:
    """Return the milliseconds of the four ways; ``loop`` takes a number of replicates."""
    start = seconds(partial(loop, 0), 3)
    whole = start + B * (seconds(partial(loop, few), 3) - start) / few
    ways = [seconds(way, repeats) if way else np.nan for way in (mine, draws, c)]
    return [1e3 * t for t in (whole, *ways)]


def main() -> None:
    """Time every job and print a table."""
    quick = "--quick" in sys.argv[1:]
    library = anchor()
    heads = ["ms, B = 1000", "NumPy", "ours", "draws", "C", "NumPy/ours", "ours/C", "exact"]
    print(f"{heads[0]:32}" + "".join(f"{head:>11}" for head in heads[1:]))

    def show(name: str, times: list[float], other: Callable[[], None] | None = None) -> None:
        loop, mine, _, c = times
        shown = [f"{t:11.1f}" for t in times] + [f"{loop / mine:11.0f}", f"{mine / c:11.2f}"]
        shown += [f"{1e3 * seconds(other, 3):11.1f}"] if other else []
        print(f"{name:32}" + "".join(shown), flush=True)

    for name, statistic, probs, other in jobs(quick):
        ready = CellRedraws.of(statistic.given(probs), probs)
        ways = (
            partial(numpy_loop, statistic, probs),
            partial(ours, statistic, probs),
            partial(ready.replicates, SEED, 0, B),
            partial(in_c, library, statistic, probs) if library else None,
        )
        repeats = 5 if len(probs) < 10**6 else 3
        show(name, timed(*ways, repeats, max(20, 10**7 // probs.size)), other)
    for n in [10**4] if quick else [10**4, 10**5, 10**6]:
        data = ct.Predictions.of(softmax(n, 10), np.zeros(n, dtype=np.int64))
        statistic, probs = ct.ECE(15), ct.TopK(1)(data).probs
        ready_bins = CellResamples.of(statistic.given(probs), probs, probs)
        ways = (
            partial(numpy_resampling, statistic, probs),
            partial(our_resampling, statistic, probs),
            partial(ready_bins.replicates, SEED, 0, B),
            partial(resampling_in_c, library, statistic, probs) if library else None,
        )
        repeats = 5 if n < 10**6 else 1
        show(f"bootstrap of top-1, n={n:.0e}", timed(*ways, repeats, max(5, 10**6 // n)))


if __name__ == "__main__":
    main()
