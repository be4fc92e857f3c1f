"""What the number of bins does to an estimate, its noise floor and its p-value."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from caltest._version import __version__
from caltest.binning import Binning
from caltest.checks import fraction
from caltest.distances import Distance
from caltest.errors import DegenerateDataWarning, StatisticError
from caltest.inference import calibration_test
from caltest.lenses import Lens, TopK, apply
from caltest.predictions import Predictions
from caltest.resampling import Workers
from caltest.results import BinSensitivity
from caltest.statistics import ECE
from caltest.written import name_of

COUNTS = (2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100)


def bin_sensitivity(
    probs: Any,
    labels: Any = None,
    *,
    lens: Lens = TopK(1),
    bins: Sequence[int | Binning] = COUNTS,
    distance: str | Distance = "tv",
    level: float = 0.9,
    n_resamples: int = 1999,
    rng: Any = None,
    workers: Workers = 1,
) -> BinSensitivity:
    """Test the ECE for many numbers of bins: does the finding hang on the binning?

    Parameters
    ----------
    probs, labels, lens
        As in :func:`calibration_test`.
    bins : sequence of int or binning, default 2 … 100
        Numbers of equal-width bins, or binnings such as ``[QuantileBins(m) for m in (5, 10, 20)]``.
    distance
        As in :class:`ECE`.
    level : float, default 0.9
        Central part of the null distribution that the noise band holds.
    n_resamples, rng, workers
        As in :func:`calibration_test`, where a null is simulated.

    Returns
    -------
    BinSensitivity

    Notes
    -----
    Each p-value is valid for a binning chosen beforehand. The smallest of them is not: pass the
    statistics together to :func:`calibration_test` for an adjusted one.

    Examples
    --------
    >>> import caltest as ct
    >>> table = bin_sensitivity(ct.examples.digits("best"), bins=[5, 15, 50])
    >>> table.estimate.round(3), table.null_mean.round(3)
    (array([0.054, 0.057, 0.07 ]), array([0.019, 0.032, 0.058]))
    """
    fraction("level", level)
    if not len(bins):
        raise StatisticError("bins is empty: pass numbers of bins or binnings")
    data = Predictions.of(probs, labels)
    induced = apply(lens, data)
    rows, names, sizes = [], [], []
    for one in bins:
        statistic = ECE(one, distance)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DegenerateDataWarning)
            test = calibration_test(
                data,
                None,
                statistic,
                lens=lens,
                n_resamples=n_resamples,
                rng=rng,
                workers=workers,
            )
        law = test.null_distribution
        assert law is not None
        ends = law.ppf(0.5 * (1.0 - level)), law.ppf(0.5 * (1.0 + level))
        rows.append((test.estimate, test.null_mean, *ends, test.pvalue))
        names.append(name_of(statistic.bins))
        sizes.append(getattr(statistic.bins, "m", statistic.given(induced.probs).counts.size))
    estimate, mean, low, high, pvalue = np.array(rows).T
    return BinSensitivity(
        bins=tuple(names),
        size=np.array(sizes),
        estimate=estimate,
        null_mean=mean,
        low=low,
        high=high,
        pvalue=pvalue,
        lens=name_of(lens),
        distance=name_of(distance),
        level=level,
        n=induced.n,
        n_classes=data.n_classes,
        version=__version__,
    )
