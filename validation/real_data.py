"""Tests of real predictions: p-value, bracket and seconds for every file of a folder.

``CALTEST_DATA=folder python -m validation.real_data`` prints a table. The folder holds npz files
with ``probs`` or ``logits`` and ``labels``, in any subfolders; nothing of them is kept.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

import numpy as np

import caltest as ct


def row(path: Path) -> str:
    """Return one line of the table."""
    with np.load(path, allow_pickle=False) as stored:
        logits = "logits" in stored
    data = ct.read_predictions(path, from_logits=logits)
    start = time.perf_counter()
    if data.n_classes == 2:
        first, second = "OneVsRest(1)", "TopK(1)"
        tests = [ct.calibration_test(data, lens=lens) for lens in (ct.OneVsRest(1), ct.TopK(1))]
    else:
        first, second = "TopK(1)", "Canonical()"
        tree = ct.ECE(ct.VarianceTree(max(20, data.n // 50)))
        tests = [
            ct.calibration_test(data),
            ct.calibration_test(data, None, tree, lens=ct.Canonical(), n_resamples=1999, rng=0),
        ]
    seconds = time.perf_counter() - start
    cells = [path.stem, str(data.n), str(data.n_classes)]
    for name, test in zip((first, second), tests, strict=True):
        low, high = test.pvalue_bracket
        cells += [
            name,
            f"{test.estimate:.4f}",
            f"{test.null_mean:.4f} ± {test.null_std:.4f}",
            test.shown_p,
            f"[{low:.2g}, {high:.2g}]",
        ]
    return "| " + " | ".join([*cells, f"{seconds:.2f}"]) + " |"


def main() -> None:
    """Print the table."""
    folder = Path(os.environ.get("CALTEST_DATA", ""))
    files = sorted(f for f in folder.glob("*/*.npz") if f.parent.name != "images")
    if not os.environ.get("CALTEST_DATA") or not files:
        sys.exit("set CALTEST_DATA to a folder of npz files with probs and labels")
    head = ["lens", "error", "noise floor", "p", "bracket"]
    columns = ["data", "n", "K", *head, *head, "s"]
    print("| " + " | ".join(columns) + " |")
    print("|" + "---|" * len(columns))
    for path in files:
        if path.parent.name == "imagenet_top5":  # five of a thousand probabilities: no distribution
            continue
        print(row(path), flush=True)


if __name__ == "__main__":
    main()
