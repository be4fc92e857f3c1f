"""The answer of a meta-analysis of calibration over sites."""

from __future__ import annotations

from typing import Any

import numpy as np

from caltest.results.base import Record, Result
from caltest.results.fields import described, entry
from caltest.results.tables import Columns


@described()
class PooledEffect(Record):
    """One measure of calibration at all sites, and its mean and spread over sites."""

    values: tuple[float, ...] = entry("The estimate of every site, and its standard error.")
    errors: tuple[float, ...]
    mean: float = entry(
        "The mean over sites (random effects), and its standard error (Hartung & Knapp)."
    )
    mean_se: float
    interval: tuple[float, float] = entry("The confidence interval of the mean.")
    prediction: tuple[float, float] = entry(
        "The prediction interval: where the true value of a further site may lie."
    )
    tau: float = entry(
        "The standard deviation of the true values over sites, by restricted maximum likelihood."
    )
    i_squared: float = entry(
        "The share of the variance of the estimates that is not noise (Higgins & Thompson)."
    )
    pvalue: float = entry("Of the hypothesis that sites are calibrated on average.")
    q: float = entry('Cochran\'s Q, and its p-value: "do all sites have the same value?".')
    q_pvalue: float


@described(title="Calibration over sites", plotter="tables.sites")
class MetaAnalysis(Result):
    """The answer of :func:`caltest.meta_analysis`; ``notes`` name the sites that are left out."""

    sites: tuple[str, ...] = entry("The sites, in the order of their names.")
    counts: tuple[int, ...] = entry("Their rows, and how many of these had the event.")
    events: tuple[int, ...]
    log_oe: PooledEffect = entry(
        "The logarithm of the ratio of observed to expected events; calibration means 0."
    )
    intercept: PooledEffect = entry(
        "Cox's intercept given slope 1, calibration in the large; calibration means 0."
    )
    slope: PooledEffect = entry("Cox's slope; calibration means 1.")
    level: float = entry("Of the intervals.")
    lens: str = entry("Through which lens the event was seen.")

    def _made(self) -> list[str]:
        how = f"{len(self.sites)} sites, REML, {100 * self.level:g} % Hartung–Knapp intervals"
        return ["meta-analysis", self.lens, how]

    def _tables(self) -> list[Columns]:
        effects = {"O:E": self.log_oe, "intercept | slope 1": self.intercept, "slope": self.slope}
        rows = {"site": self.sites, "n": self.counts, "events": self.events}
        rows |= {name: _ratio(name, effect.values) for name, effect in effects.items()}
        means: dict[str, list[Any]] = {"mean over sites": list(effects)}
        for field in ("mean", "interval", "prediction"):
            shown = "prediction interval" if field == "prediction" else field
            means[shown] = [_ratio(name, getattr(e, field)) for name, e in effects.items()]
        for field, head in {"tau": "τ", "i_squared": "I²", "pvalue": "pvalue"}.items():
            means[head] = [getattr(effect, field) for effect in effects.values()]
        return [rows, {**means, "Q pvalue": [effect.q_pvalue for effect in effects.values()]}]

    def _in_words(self) -> list[str]:
        return [
            "p: calibrated on average; Q: one value at all sites (Cochran 1954). τ of O:E is on "
            "the scale of logarithms."
        ]


def _ratio(name: str, values: Any) -> Any:
    """Return logarithms of ratios as ratios, and other values as they are."""
    if name != "O:E":
        return values
    return tuple(np.exp(values).tolist()) if isinstance(values, tuple) else float(np.exp(values))
