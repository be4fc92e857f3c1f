"""Calibration curves of centres: a restricted cubic spline at every site."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from caltest._base.arrays import FloatArray
from caltest.inference.cox import covariance_of
from caltest.predictions import Predictions
from caltest.statistics.regression import fit_logistic, log_odds

#: Of how many predictions a curve consists.
POINTS = 50
#: Larger coefficients of a spline mean that outcomes are separated: log-odds without a limit.
SEPARATED = 50.0


def centre_curves(
    sites: Mapping[str, Predictions],
) -> tuple[FloatArray, dict[str, FloatArray], list[str]]:
    """Return 50 log-odds, every site's curve with its errors there, and notes on who has none.

    At a site logit P(y = 1) is a :func:`restricted_spline` of z = logit p with knots at the .1, .5
    and .9 quantiles of its own predictions. The log-odds are equally spaced between the .05 and .95
    quantiles of all predictions; a curve, (2, 50), is NaN where its site has no predictions.
    """
    logits = {name: log_odds(seen) for name, seen in sites.items()}
    low, high = np.quantile(np.concatenate([*logits.values()]), (0.05, 0.95))
    at = np.linspace(low, high, POINTS)
    fits = {name: centre_curve(seen, logits[name], at) for name, seen in sites.items()}
    notes = [
        f"site {name} has no curve: a spline separates its outcomes, or it has few predictions"
        for name, fit in fits.items()
        if fit is None
    ]
    return at, {name: fit for name, fit in fits.items() if fit is not None}, notes


def restricted_spline(z: FloatArray, knots: FloatArray) -> FloatArray:
    """Return 1, z and the term of a cubic spline that is linear beyond its three knots, (n, 3).

    [(z − k₁)³₊ − (z − k₂)³₊ (k₃ − k₁)/(k₃ − k₂) + (z − k₃)³₊ (k₂ − k₁)/(k₃ − k₂)] / (k₃ − k₁)²
    (Harrell, Regression Modeling Strategies, section 2.4).
    """
    first, second, third = knots
    cubes = [np.maximum(z - knot, 0.0) ** 3 for knot in knots]
    bent = cubes[0] - cubes[1] * (third - first) / (third - second)
    bent += cubes[2] * (second - first) / (third - second)
    return np.column_stack([np.ones_like(z), z, bent / (third - first) ** 2])


def centre_curve(induced: Predictions, z: FloatArray, at: FloatArray) -> FloatArray | None:
    """Return fitted log-odds and their errors; None where there is no finite fit."""
    knots = np.quantile(z, (0.1, 0.5, 0.9))
    if np.diff(knots).min() <= 1e-9:
        return None
    design, wanted = restricted_spline(z, knots), restricted_spline(at, knots)
    events = (induced.labels == 0).astype(np.float64)
    beta = fit_logistic(design, np.zeros(induced.n), events, induced.weights)[1]
    if np.abs(beta).max() > SEPARATED:
        return None
    covariance = covariance_of(design, design @ beta, events, induced.weights, induced)
    errors = np.sqrt(np.einsum("gi,ij,gj->g", wanted, covariance, wanted))
    outside = (at < z.min()) | (at > z.max())
    return np.where(outside, np.nan, [wanted @ beta, errors])
