"""A larger estimate with a larger p-value.

Two models of the same 1000 labels. The first is perfect and looked at with 100 bins: its estimate
exceeds the second, which is a constant that is off by 0.05, looked at with one bin. Only the
p-value knows which error is real. Ranking models by estimates is not a comparison.
"""

from __future__ import annotations

import numpy as np

import caltest as ct
from paper_replications.conventions import COLUMNS, ask
from paper_replications.model import Context, Result, Table

PAPER = "Vaicenavicius et al. 2019"
WHERE = "§4.3"
RECONSTRUCTION = "the text states the inequality; the models and the seed are ours."


def run(context: Context) -> Result:
    """Compute both estimates and both p-values on the same labels."""
    result = Result()
    perfect = ct.examples.GaussianMixture(0.0, -2.0).sample(1000, 2)
    constant = ct.Predictions.of(np.tile([0.45, 0.55], (1000, 1)), perfect.labels)
    a = ask(perfect, ct.ECE(100), ct.OneVsRest(0), context.seed)
    b = ask(constant, ct.ECE(1), ct.OneVsRest(0), context.seed)
    result.near("estimate of the perfect model, 100 bins", a.estimate, 0.0838, 5e-5)
    result.near("estimate of the constant model, 1 bin", b.estimate, 0.0500, 5e-5)
    result.near("p-value of the perfect model", a.p, 0.41, 0.06, digits=3)
    result.near("p-value of the constant model", b.p, 0.003, 0.0015, digits=4)
    result.holds(
        "the larger estimate has the larger p-value",
        a.estimate > b.estimate and a.p > 0.05 > b.p,
        f"{a.estimate:.3f} > {b.estimate:.3f} and {a.p:.2f} > 0.05 > {b.p:.4f}",
    )
    rows = [a.row("perfect, 100 bins"), b.row("constant 0.45, 1 bin")]
    result.tables.append(Table("Two conventions.", ["model", *COLUMNS], rows))
    return result
