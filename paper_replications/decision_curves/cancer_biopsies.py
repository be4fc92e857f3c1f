"""Decision curves of 750 patients before a biopsy, as in the R package dcurves (needs --data).

105 of the 750 patients of the package's tutorial have cancer. Its Python twin ships the data,
`df_binary.csv`, and results of R for two decisions, at the thresholds 0, 0.01, …, 0.99: to biopsy
whoever has a family history, and by a risk that is logistic in age. Net benefit at t > 0 agrees in
all digits. At t = 0 R acts on patients with a family history only, since its rule there is "above
the threshold"; here thresholds are above 0, and one acts from the threshold on.

R gives no limits for the curve and no test. The last table has both for `cancerpredmarker`, a risk
of the tutorial: net benefit promised by the risks and gained, the exact p-value of the difference,
and limits for each threshold and for all five together.
"""

from __future__ import annotations

import csv
import warnings
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

import caltest as ct
from caltest.errors import DoubtfulInputWarning
from paper_replications.conventions import exact_p
from paper_replications.model import Context, Result, Table

PAPER = "Sjoberg & Vickers, dcurves"
WHERE = "df_binary.csv, r_dca_famhistory.csv, r_simple_binary_dca_result_df.csv"
FOLDER = "decisions"
Floats = NDArray[np.float64]


def run(context: Context) -> Result:
    """Compare net benefit at all thresholds with R, and add limits and tests."""
    result = Result()
    if context.data is None or not (context.data / FOLDER / "df_binary.csv").is_file():
        return result
    with warnings.catch_warnings():  # decisions are 0 and 1, and risks fitted to these patients
        warnings.simplefilter("ignore", DoubtfulInputWarning)
        _compare(result, context.data / FOLDER, context)
    return result


def _compare(result: Result, folder: Path, context: Context) -> None:
    """Check net benefit at all thresholds of two decisions, and go beyond R for a third."""
    with (folder / "df_binary.csv").open(encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    cancer = np.array([row["cancer"] == "TRUE" for row in rows])
    column = {name: np.array([float(row[name]) for row in rows])
              for name in ("age", "famhistory", "cancerpredmarker")}  # fmt: skip
    result.near("patients", cancer.size, 750, 0.0, digits=0)
    result.near("patients with cancer", cancer.sum(), 105, 0.0, digits=0)
    for name, file_name, risk in (
        ("famhistory", "r_dca_famhistory.csv", column["famhistory"]),
        ("age", "r_simple_binary_dca_result_df.csv", _logistic(column["age"], cancer)),
    ):
        published = _of_r(folder / file_name, name)
        curve = ct.decision_curve(risk, cancer, [*published], as_is=True)
        there = np.array([*published.values()])
        away = float(np.abs(curve.net_benefit - there).max())
        result.near(f"{name}: largest difference from R, {there.size} thresholds", away, 0.0,
                    1e-12, digits=16)  # fmt: skip
        everyone = np.array([*_of_r(folder / file_name, "all").values()])
        away = float(np.abs(curve.treat_all - everyone).max())
        result.near(f"{name}: the same for acting always", away, 0.0, 1e-12, digits=16)
    _beyond_r(result, column["cancerpredmarker"], cancer, context)


def _beyond_r(result: Result, risk: Floats, cancer: NDArray[np.bool_], context: Context) -> None:
    """Add what R does not give: promised net benefit, exact p-values, and limits."""
    thresholds = [0.05, 0.1, 0.15, 0.2, 0.35]
    few = ct.decision_curve(risk, cancer, thresholds)
    table = [
        [f"{t:g}", f"{gained:.6f}", f"{promised:.6f}", exact_p(p), f"{low:.4f} to {high:.4f}",
         f"{low_all:.4f} to {high_all:.4f}"]
        for t, gained, promised, p, low, high, low_all, high_all in zip(
            thresholds, few.net_benefit, few.promised, few.pvalues, few.low, few.high,
            few.low_all, few.high_all, strict=True,
        )
    ]  # fmt: skip
    columns = ["threshold", "net benefit", "promised", "p", "95 % limits", "for all five"]
    result.tables.append(Table("Risks of the tutorial, beyond R.", columns, table))
    result.holds(
        "no promise is broken", float(few.pvalues.min()) > 0.05, f"{few.pvalues.min():.3f}"
    )
    curve = ct.decision_curve(risk, cancer, np.arange(1, 51) / 100.0)
    lines, gaps = curve.net_benefit, curve.high_all - curve.low_all
    result.holds(
        "limits for all thresholds hold the curve and are wider than those for one",
        bool(((lines >= curve.low_all) & (lines <= curve.high_all)).all())
        and bool((gaps > curve.high - curve.low).all()),
        f"{curve.critical:.2f} standard errors",
    )
    if context.draw:
        picture = curve.plot(recipe=False)
        caption = "Net benefit, with limits for all thresholds together."
        result.save(picture.figure, "d_curves", caption, context)


def _logistic(x: Floats, y: NDArray[np.bool_]) -> Floats:
    """Return the probabilities of a logistic regression with an intercept, by Newton's method."""
    design = np.column_stack([np.ones_like(x), (x - x.mean()) / x.std()])
    beta = np.zeros(2)
    for _ in range(30):
        p = 1.0 / (1.0 + np.exp(-design @ beta))
        information = design.T @ (design * (p * (1.0 - p))[:, None])
        beta = beta + np.linalg.solve(information, design.T @ (y - p))
    return np.asarray(1.0 / (1.0 + np.exp(-design @ beta)))


def _of_r(path: Path, name: str) -> dict[float, float]:
    """Return net benefit by threshold, between 0 and 1, of one of the decisions in R's file."""
    with path.open(encoding="utf-8") as file:
        rows = [row for row in csv.DictReader(file) if row["variable"] == name]
    found = {round(float(row["threshold"]), 2): row["net_benefit"] for row in rows}
    return {t: float(benefit) for t, benefit in found.items() if 0.0 < t < 1.0}
