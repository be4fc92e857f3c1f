"""Reliability curves without bins: isotonic (CORP) and smooth, with consistency bands."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, Literal

import numpy as np

from caltest._version import __version__
from caltest.checks import fraction, one_of
from caltest.lenses import Lens, TopK, apply
from caltest.predictions import FloatArray, IntArray, Predictions
from caltest.reliability.bars import quantile_bars
from caltest.reliability.parts import names_of, own_test, refuse_more_classes
from caltest.resampling import RedrawLabels, Workers, on_labels, simulate
from caltest.results import ReliabilityFit
from caltest.results.reliability import SPREAD_EDGES
from caltest.statistics import CORP, SmoothECE
from caltest.statistics.isotonic import pav
from caltest.statistics.smooth import smooth_curve
from caltest.written import name_of

Fit = Literal["isotonic", "smooth"]
#: Steps of the grid on which residuals are smoothed.
GRID = 1000


def reliability_fit(
    probs: Any,
    labels: Any = None,
    *,
    lens: Lens = TopK(1),
    fit: Fit = "isotonic",
    band: Literal["consistency"] | None = "consistency",
    level: float = 0.9,
    simultaneous: bool = False,
    points: int = 200,
    n_resamples: int = 999,
    rng: Any = None,
    workers: Workers = 1,
) -> ReliabilityFit:
    """Estimate the outcome as a function of the prediction, without bins.

    Parameters
    ----------
    probs, labels
        As in :func:`calibration_test`.
    lens : callable, default TopK(1)
        A lens that leaves two classes.
    fit : {"isotonic", "smooth"}, default "isotonic"
        ``"isotonic"``: the CORP reliability curve, pool adjacent violators (Dimitriadis, Gneiting &
        Jordan 2021). ``"smooth"``: kernel smoothing at the scale of the error itself (Błasiok &
        Nakkiran 2024).
    band : {"consistency"} or None, default "consistency"
        Where the curve of a calibrated model lies: labels are redrawn from the predictions and the
        curve is fitted anew; a kernel keeps the width that it has for the observed labels.
    level : float, default 0.9
        Probability that the band holds the curve, at each point.
    simultaneous : bool, default False
        Whether ``level`` is for all points together (max-T).
    points : int, default 200
        Where the curve is evaluated: half of them at quantiles of the predictions, half equally
        spaced between the smallest and the largest.
    n_resamples, rng, workers
        For the band and the test.

    Returns
    -------
    ReliabilityFit
        Its test is of :class:`CORP` or :class:`SmoothECE`.

    Raises
    ------
    StatisticError
        For a lens that leaves more than two classes, or another fit or band.

    Notes
    -----
    O(n log n + B n).

    Examples
    --------
    >>> import caltest as ct
    >>> curve = reliability_fit(ct.examples.digits(), n_resamples=99, rng=1)
    >>> bool((np.diff(curve.fitted) >= 0).all()), curve.test.statistic
    (True, "CORP('brier')")
    """
    one_of("fit", fit, ("isotonic", "smooth"))
    one_of("band", band, ("consistency", None))
    fraction("level", level)
    data = Predictions.of(probs, labels)
    induced = apply(lens, data)
    refuse_more_classes("a curve", lens, induced)
    p = induced.probs[:, 0]
    at = np.unique(
        np.concatenate(
            [
                np.quantile(p, np.linspace(0.0, 1.0, -(-points // 2)), method="nearest"),
                np.linspace(p.min(), p.max(), points // 2),
            ]
        )
    )
    evaluate: Callable[[IntArray], FloatArray]
    if fit == "isotonic":
        evaluate = _Isotonic.of(p, at)
    else:
        evaluate = _Smooth.of(p, at, smooth_curve(induced.probs, induced.labels).width)
    low = high = np.full(at.size, np.nan)
    options: dict[str, Any] = {"rng": rng, "workers": workers}
    if band is not None:
        draws, _ = simulate(
            on_labels(evaluate), RedrawLabels().sampler(induced), n_resamples, **options
        )
        low, high = quantile_bars(draws, level, simultaneous=simultaneous)
    statistic = CORP() if fit == "isotonic" else SmoothECE()
    return ReliabilityFit(
        predicted=at,
        fitted=evaluate(induced.labels),
        low=np.clip(low, 0.0, 1.0),
        high=np.clip(high, 0.0, 1.0),
        spread=np.histogram(p, SPREAD_EDGES)[0],
        name=names_of(lens, data, induced)[0],
        fit=fit,
        lens=name_of(lens),
        level=level,
        simultaneous=simultaneous,
        n=induced.n,
        n_classes=data.n_classes,
        n_resamples=n_resamples if band is not None else 0,
        test=own_test(induced, statistic, lens, data, n_resamples=n_resamples, **options),
        notes=data.notes,
        version=__version__,
    )


@dataclass(frozen=True)
class _Isotonic:
    """The isotonic fit at some points, as a function of the labels."""

    at: FloatArray
    predicted: FloatArray
    order: IntArray = field(repr=False)
    starts: IntArray = field(repr=False)
    count: FloatArray = field(repr=False)

    @classmethod
    def of(cls, p: FloatArray, at: FloatArray) -> _Isotonic:
        order = np.argsort(p, kind="stable")
        predicted, starts, count = np.unique(p[order], return_index=True, return_counts=True)
        return cls(at, predicted, order, starts, count.astype(np.float64))

    def __call__(self, labels: IntArray) -> FloatArray:
        events = np.add.reduceat((labels[self.order] == 0).astype(np.float64), self.starts)
        return np.interp(self.at, self.predicted, pav(events / self.count, self.count))


@dataclass(frozen=True)
class _Smooth:
    """The residuals smoothed by a reflected Gaussian kernel of one width, on a grid of [0, 1]."""

    at: FloatArray
    p: FloatArray = field(repr=False)
    cell: IntArray = field(repr=False)
    share: FloatArray = field(repr=False)
    weights: FloatArray = field(repr=False)

    @classmethod
    def of(cls, p: FloatArray, at: FloatArray, width: float) -> _Smooth:
        place = p * GRID
        cell = np.minimum(place.astype(np.int64), GRID - 1)
        t = np.arange(GRID + 1) / GRID
        weights = np.zeros((at.size, GRID + 1))
        for image in (t, -t, 2.0 - t):  # the kernel is reflected at both ends
            weights += np.exp(-0.5 * ((at[:, None] - image) / width) ** 2)
        fixed = cls(at, p, cell, place - cell, weights)
        mass = weights @ fixed.on_grid(np.ones_like(p))
        return replace(fixed, weights=weights / mass[:, None])

    def on_grid(self, values: FloatArray) -> FloatArray:
        """Split every value between the two neighbours of its prediction."""
        sums: Any = np.bincount(self.cell, (1.0 - self.share) * values, GRID + 1)
        sums += np.bincount(self.cell + 1, self.share * values, GRID + 1)
        return sums

    def __call__(self, labels: IntArray) -> FloatArray:
        residuals = self.on_grid((labels == 0) - self.p)
        return np.clip(self.at + self.weights @ residuals, 0.0, 1.0)
