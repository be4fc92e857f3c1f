"""The eight values that calzone's page prints, and their p-values.

The page's simulated data are the first 5000 numbers of a seeded generator and are made again here,
bit for bit. All eight values are met to twelve digits, once a convention is copied: the page's bins
of equal count leave out the smallest prediction. The data are calibrated by construction, and the
p-values, which the page does not print, say so. (The page's plot is titled "10000 samples"; the
file has 5000.)
"""

from __future__ import annotations

import numpy as np
import scipy.stats

import caltest as ct
from paper_replications.conventions import COLUMNS, ask
from paper_replications.model import Context, Result, Table

PAPER = "calzone documentation"
WHERE = "Exepected Calibration Error(ECE) and Maximum Calibration Error (MCE)"

PRINTED = {
    "ECE-H topclass": 0.009608653731328977,
    "ECE-H": 0.01208775955804901,
    "MCE-H topclass": 0.03926468843081976,
    "MCE-H": 0.04848338618970194,
    "ECE-C topclass": 0.009458033653818828,
    "ECE-C": 0.008733966945443138,
    "MCE-C topclass": 0.020515047600205505,
    "MCE-C": 0.02324031223486256,
}


def simulated() -> ct.Predictions:
    """Return the page's data: calibrated probabilities from Beta(1/2, 1/2)."""
    state = np.random.RandomState(123)
    p = scipy.stats.beta.rvs(0.5, 0.5, size=5000, random_state=state)
    return ct.Predictions.of(p, state.binomial(1, p))


def run(context: Context) -> Result:
    """Compute the eight values, and test them."""
    result = Result()
    data, rows = simulated(), []
    for name, printed in PRINTED.items():
        metric, _, topclass = name.lower().partition(" ")
        preset = ct.presets.calzone(metric, class_index=None if topclass else 1)  # type: ignore[arg-type]
        result.near(name, preset(data), printed, 1e-12, digits=12)
        rows.append(ask(data, preset.statistic, preset.lens, context.seed).row(name))
    result.tables.append(Table("All eight, tested; two conventions.", ["value", *COLUMNS], rows))
    for name, lens, known in (
        ("ECE-C", ct.OneVsRest(1), 0.00873222),
        ("ECE-C topclass", ct.TopK(1), 0.00955612),
    ):
        seen = lens(data)
        edges = ct.EdgeBins(tuple(np.quantile(seen.probs[:, 0], np.arange(1, 10) / 10)))
        ours = ct.ECE(edges)(seen)
        result.near(f"{name} with the smallest prediction kept", ours, known, 5e-9, digits=8)
    test = ct.calibration_test(data, None, ct.ECE(10), lens=ct.OneVsRest(1))
    low, high = test.pvalue_bracket
    result.holds(
        "the exact bracket of the p-value of ECE-H meets the one known from another method",
        low <= 0.526603 and high >= 0.526140,
        f"[{low:.4f}, {high:.4f}]",
        "[0.5261, 0.5266]",
    )
    return result
