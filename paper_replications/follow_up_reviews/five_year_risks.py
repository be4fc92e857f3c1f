"""Five-year risks of patients who were not all followed for five years (needs --data).

Two published validations: recurrence of breast cancer with death as a competing event (van Geloven
et al., 1000 patients), and recurrence or death (Giardiello et al., 686 patients of the German
Breast Cancer Study Group). Their ratios of observed to expected events agree with `Followup` in
one stratum, with the first paper's interval to all printed digits. The second takes the number of
events for a Poisson count in place of Greenwood's variance, and its interval is a third wider.

Recalibration there is least squares of pseudo-observations, computed below. `cox_recalibration`
solves the score equations of binomial outcomes, in which low risks count more: 1.32 in place of
1.22. Weights have no part in that, as only two of these 1000 patients are unknown.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

import caltest as ct
from paper_replications.conventions import exact_p
from paper_replications.model import Context, Result, Table

PAPER = "van Geloven et al. 2022, Giardiello et al. 2023"
WHERE = "Tables of validation, and their code in R"
Floats = NDArray[np.float64]
Integers = NDArray[np.int64]


def run(context: Context) -> Result:
    """Compare O:E, its interval, intercept, slope and ICI."""
    result = Result()
    files = ("vangeloven_competing.npz", "gbsg_5years.npz")
    paths = [context.data / "clinical" / name for name in files] if context.data else []
    if not all(path.is_file() for path in paths) or not paths:
        return result
    (p, time, event), (risk, years, status) = (
        tuple(np.load(path)[name] for name in ("risk", "time", "event")) for path in paths
    )
    competing = ct.cox_recalibration(p, _followup(time, event, strata=np.zeros(p.size, int)))
    assert competing.oe is not None
    assert competing.oe_interval is not None
    for name, ours, printed in zip(
        ("", ", lower limit", ", upper limit"),
        (competing.oe, *competing.oe_interval), (0.81, 0.67, 0.97), strict=True,
    ):  # fmt: skip
        result.near(f"competing risks: O/E{name}", ours, printed, 0.005, digits=3)
    theta = _pseudo_observations(time, event)
    (shift,), variance = _pseudo_fit(theta, p, 1)
    line, spread = _pseudo_fit(theta, p, 2)
    result.near("intercept by pseudo-observations", shift, -0.15, 0.005, digits=3)
    reach = 1.96 * np.sqrt(variance[0, 0])
    result.near("its lower limit", shift - reach, -0.36, 0.005, digits=3)
    result.near("slope by pseudo-observations", 1.0 + line[1], 1.22, 0.005, digits=3)
    reach = 1.96 * np.sqrt(spread[1, 1])
    result.near("its upper limit (slope)", 1.0 + line[1] + reach, 1.60, 0.005, digits=3)
    one = ct.cox_recalibration(risk, _followup(years, status, strata=np.zeros(risk.size, int)))
    assert one.oe is not None
    result.near("GBSG: O/E", one.oe, 1.02, 0.005, digits=3)
    reach = np.exp(1.96 / np.sqrt(one.events))
    result.near("lower limit by the number of events", one.oe / reach, 0.91, 0.005, digits=3)
    result.near("upper limit by the number of events", one.oe * reach, 1.14, 0.005, digits=3)
    result.near("ICI", ct.ICI()(risk, _followup(years, status)), 0.03, 0.005, digits=4)
    rows = []
    for name, q, seen in (
        ("competing risks", p, _followup(time, event)),
        ("GBSG", risk, _followup(years, status)),
    ):
        fit = ct.cox_recalibration(q, seen, link="cloglog")
        test = ct.calibration_test(q, seen, ct.CoxScore(), rng=context.seed, n_resamples=999)
        numbers = (fit.oe, fit.in_the_large, fit.slope)
        rows.append([name, *(f"{number:.3f}" for number in numbers), exact_p(test.pvalue)])
    caption = "By weights in tenths of the prediction."
    columns = ["", "O:E", "calibration-in-the-large", "slope (cloglog)", "p of Cox's score"]
    result.tables.append(Table(caption, columns, rows))
    return result


def _followup(time: Floats, event: Integers, strata: Integers | None = None) -> ct.Followup:
    return ct.Followup(time, event == 1, horizon=5.0, competing=event == 2, strata=strata)


def _pseudo_observations(time: Floats, event: Integers) -> Floats:
    """Return n F − (n − 1) F₋ᵢ, F the cumulative incidence of all patients and F₋ᵢ without one."""
    seen, n = _followup(time, event, strata=np.zeros(time.size, int)), time.size

    def incidence(rows: Integers) -> float:
        part = seen.take(rows)
        return float((part.censoring(np.zeros(rows.size)).weights * part.labels).mean())

    all_rows = np.arange(n)
    without = np.array([incidence(np.delete(all_rows, i)) for i in range(n)])
    return n * incidence(all_rows) - (n - 1) * without


def _pseudo_fit(theta: Floats, p: Floats, columns: int) -> tuple[Floats, Floats]:
    """Return what is added to log(−log(1 − p)), by least squares, and its sandwich variance."""
    c = np.log(-np.log1p(-p))
    design, beta = np.vander(c, columns, increasing=True), np.zeros(columns)
    for _ in range(50):
        eta = c + design @ beta
        mean, slope = -np.expm1(-np.exp(eta)), np.exp(eta - np.exp(eta))
        scores = design * (slope * (theta - mean))[:, None]
        inverse = np.linalg.inv((design * slope[:, None] ** 2).T @ design)
        beta = beta + inverse @ scores.sum(axis=0)
    return beta, inverse @ (scores.T @ scores) @ inverse
