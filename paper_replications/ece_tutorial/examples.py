"""The tutorial's two examples, and why it prints 0.192 where its code returns 0.132.

Nine predictions of two classes and ten of five. The binary value is as printed. For five classes
the article says 0.192, but its code with its default of M = 5 bins returns 0.132: 0.192 is the
value with three bins, the default of an earlier version of the article. Predictions on the edge of
a bin add a second source of confusion. And with nine or ten observations none of these numbers
means anything: a calibrated model shows as much in four data sets of five.
"""

from __future__ import annotations

import numpy as np

import caltest as ct
from paper_replications.conventions import COLUMNS, ask
from paper_replications.model import Context, Result, Table

PAPER = "Tutorial on the ECE"
WHERE = "both examples"

BINARY = ct.Predictions.of(
    1.0 - np.array([0.78, 0.36, 0.08, 0.58, 0.49, 0.85, 0.30, 0.63, 0.17]),
    [0, 1, 0, 0, 0, 0, 1, 1, 1],
)
MULTICLASS = ct.Predictions.of(
    [
        [0.25, 0.20, 0.22, 0.18, 0.15],
        [0.16, 0.06, 0.50, 0.07, 0.21],
        [0.06, 0.03, 0.80, 0.07, 0.04],
        [0.02, 0.03, 0.01, 0.04, 0.90],
        [0.40, 0.15, 0.16, 0.14, 0.15],
        [0.15, 0.28, 0.18, 0.17, 0.22],
        [0.07, 0.80, 0.03, 0.06, 0.04],
        [0.10, 0.05, 0.03, 0.75, 0.07],
        [0.25, 0.22, 0.05, 0.30, 0.18],
        [0.12, 0.09, 0.02, 0.17, 0.60],
    ],
    [0, 2, 3, 4, 2, 0, 1, 3, 3, 2],
)


def run(context: Context) -> Result:
    """Compute both examples with several bin numbers and both edge conventions."""
    result = Result()
    known = {
        ("binary", 5, "right"): 0.94 / 9,
        ("binary", 10, "right"): 1.58 / 9,
        ("binary", 10, "left"): 2.12 / 9,
        ("binary", 15, "right"): 2.96 / 9,
        ("binary", 15, "left"): 2.96 / 9,
        ("five classes", 3, "right"): 0.192,
        ("five classes", 5, "right"): 0.132,
        ("five classes", 10, "right"): 0.312,
        ("five classes", 3, "left"): 0.192,
        ("five classes", 5, "left"): 0.212,
    }
    for (name, m, closed), value in known.items():
        data = BINARY if name == "binary" else MULTICLASS
        result.near(f"{name}, {m} bins closed on the {closed}", _ece(data, m, closed), value, 1e-12)
    seen = ct.TopK(1)(BINARY)
    cells = ct.UniformBins(5)(seen.probs)
    bins = {2: (2, 0.545, 0.5), 3: (4, 0.6875, 0.75), 4: (3, 2.6 / 3, 2 / 3)}
    for cell, (count, confidence, accuracy) in bins.items():
        inside = cells == cell
        name = f"binary, bin {cell + 1}"
        result.near(f"{name}: predictions", inside.sum(), count, 0.0, digits=0)
        result.near(f"{name}: confidence", seen.probs[inside, 0].mean(), confidence, 1e-12)
        result.near(f"{name}: accuracy", (seen.labels[inside] == 0).mean(), accuracy, 1e-12)
    floats = ct.EdgeBins(tuple(np.linspace(0.0, 1.0, 6)[1:-1]), closed="left")
    result.near(
        "five classes, 5 bins closed on the left, edges of np.linspace (0.6000000000000001)",
        _value(MULTICLASS, ct.ECE(floats)),
        0.242,
        1e-12,
    )
    older = ct.Predictions.of(
        [0.22, 0.64, 0.92, 0.42, 0.51, 0.15, 0.70, 0.37, 0.83], [0, 1, 0, 0, 0, 1, 1, 0, 1]
    )
    result.near(
        "older version of the article, P(label 1) taken for the confidence, 3 bins",
        _older(older),
        0.2377777777777778,
        1e-12,
    )
    result.near("largest gap of the binary example (MCE)", _value(BINARY, ct.MCE(5)), 0.2, 1e-12)
    rows = []
    for name, data, exact in (
        ("binary", BINARY, 0.8675084904829311),
        ("five classes", MULTICLASS, 0.8367688),
    ):
        answer = ask(data, ct.ECE(5), ct.TopK(1), context.seed, n_resamples=9999)
        result.near(f"exact p-value, {name}, 5 bins", answer.p, exact, 1e-9, digits=7)
        rows.append(answer.row(name))
    result.tables.append(Table("Two conventions, 5 bins.", ["example", *COLUMNS], rows))
    return result


def _value(data: ct.Predictions, statistic: ct.ECE | ct.MCE) -> float:
    return statistic(ct.TopK(1)(data))


def _ece(data: ct.Predictions, m: int, closed: str) -> float:
    return _value(data, ct.ECE(ct.UniformBins(m, closed=closed)))  # type: ignore[arg-type]


def _older(data: ct.Predictions) -> float:
    """Σ_b share |accuracy − mean P(label 1)|, where the label predicted is 1 above 1/2."""
    p, right = data.probs[:, 1], (data.probs[:, 1] > 0.5) == (data.labels == 1)
    cells = ct.UniformBins(3)(p)
    return sum(abs((right - p)[cells == c].sum()) for c in np.unique(cells)) / p.size
