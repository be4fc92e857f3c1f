"""Published errors of CIFAR-10 networks, to eight digits (needs --data).

The follow-up of Vaicenavicius et al. by two of its authors publishes errors of the whole vector for
fourteen networks: on a grid, on a data-dependent partition, and without bins by a kernel. Those
whose predictions are in the optional data are met to eight digits. All published p-values of the
first two are 0; redrawn labels agree that every network is miscalibrated, and say it as 1/(B + 1).
"""

from __future__ import annotations

import csv

import numpy as np

import caltest as ct
from paper_replications.model import Context, Result, Table

PAPER = "Widmann, Lindsten & Zachariah 2019"
WHERE = "published errors.csv and pvalues.csv"


def run(context: Context) -> Result:
    """Compute every published value whose predictions are there."""
    result, rows = Result(), []
    oracle = context.data / "oracle" / "cifar10_canonical_published.csv" if context.data else None
    if oracle is None or not oracle.is_file():
        return result
    with oracle.open() as file:
        published = list(csv.DictReader(file))
    for row in published:
        stored = context.stored(row["file"])
        if stored is None:
            continue
        labels = stored["labels"].astype(np.int64)
        data = ct.Predictions(stored["probs"].astype(float), labels)  # sums stay as published
        name = row["file"].removeprefix("multiclass/").removesuffix(".npz")
        if not context.quick or name == "cifar10_densenet121":
            kernel = ct.SKCE(ct.TVKernel("median-with-diagonal"))
            published_skce = float(row["SKCEuq_median"])
            result.near(
                f"{name}, SKCEuq",
                kernel(data),
                published_skce,
                1e-7 * published_skce,
                digits=10,
            )
        for column, preset in (
            ("ECE_uniform", ct.presets.calibrationerrors_jl()),
            ("ECE_dynamic", ct.presets.calibrationerrors_jl("median-variance", min_size=100)),
        ):
            known = float(row[column])
            entry = f"{name}, {column}"
            result.near(entry, preset.statistic(data), known, 1e-8, digits=9)
            test = ct.calibration_test(
                stored["probs"], labels, **preset, n_resamples=context.times(999, 99),
                rng=context.seed,
            )  # fmt: skip
            floor = 1.0 / (1 + test.n_resamples)
            result.near(f"p-value of {entry}", test.pvalue, floor, 1e-12)
            rows.append([entry, f"{test.estimate:.4f}", f"{test.null_mean:.4f}", test.shown_p])
    result.tables.append(Table("Redrawn labels.", ["network", "error", "noise floor", "p"], rows))
    return result
