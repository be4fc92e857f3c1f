"""What the number of bins does to an estimate, its noise floor and its p-value."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

import numpy as np

from caltest._base.arrays import RNG
from caltest._base.checks import fraction
from caltest._base.defaults import BAND_LEVEL, N_TOGETHER
from caltest._base.written import name_of
from caltest.binning import Binning, QuantileBins, UniformBins, as_binning
from caltest.distances import Distance
from caltest.errors import StatisticError
from caltest.inference.admission import ROWS
from caltest.lenses import LensLike
from caltest.predictions import Facts
from caltest.problem import Cells
from caltest.reliability.simplex import SimplexGrid
from caltest.reliability.view import View
from caltest.results import BinSensitivity, ending
from caltest.simulate import Run, Workers
from caltest.statistics import ECE

#: Binnings that are named by a number of bins.
NUMBERED = (UniformBins, QuantileBins, SimplexGrid)
COUNTS = (2, 3, 5, 7, 10, 15, 20, 30, 50, 70, 100)


def bin_sensitivity(
    probs: object,
    labels: object = None,
    *,
    lens: LensLike | None = None,
    bins: Sequence[int | Binning] = COUNTS,
    distance: str | Distance = "tv",
    level: float = BAND_LEVEL,
    n_resamples: int = N_TOGETHER,
    rng: RNG = None,
    workers: Workers = 1,
    **facts: Unpack[Facts],
) -> BinSensitivity:
    """Test the ECE for many numbers of bins: does the finding hang on the binning?

    Each p-value is valid for a binning chosen beforehand. The smallest of them is not: pass the
    statistics together to :func:`joint_test` for an adjusted one.

    Parameters
    ----------
    probs, labels, lens, n_resamples, rng, workers, **facts
        As in :func:`calibration_test`.
    bins : sequence of int or binning, default 2 … 100
        Numbers of equal-width bins, or binnings such as ``[QuantileBins(m) for m in (5, 10, 20)]``.
        Of a :class:`Tally` the default has those that are made of its micro-cells.
    distance
        As in :class:`ECE`.
    level : float, default 0.9
        Central part of the null distribution that the noise band holds.

    Examples
    --------
    >>> import caltest as ct
    >>> table = bin_sensitivity(ct.examples.digits("best"), bins=[5, 15, 50])
    >>> table.estimate.round(3), table.null_mean.round(3)
    (array([0.054, 0.057, 0.07 ]), array([0.019, 0.032, 0.058]))
    """
    fraction("level", level)
    if not isinstance(bins, Sequence) or not bins:
        raise StatisticError("bins must be a list of numbers or binnings, such as [5, 15, 50]")
    takes = {*ROWS, "tally"}
    view = View.of("bin_sensitivity", probs, labels, facts, lens=lens, rng=rng, takes=takes)
    grid = view.units.grid
    if grid is not None and bins is COUNTS:
        bins = [count for count in COUNTS if grid % count == 0]
    run = Run(n_resamples=n_resamples, rng=rng, workers=workers)
    binnings = [as_binning(one) for one in bins]
    rows, tests = [], []
    for binning in binnings:
        test = view.test(ECE(binning, distance=distance), view.problem, run)
        law = test.null_distribution
        assert law is not None
        ends = law.ppf(0.5 * (1.0 - level)), law.ppf(0.5 * (1.0 + level))
        rows.append((test.estimate, test.null_mean, *ends, test.pvalue))
        tests.append(test)
    estimate, mean, low, high, pvalue = np.array(rows).T

    def occupied(binning: Binning) -> int:
        return len(Cells.of(binning, view.units))

    sizes = [b.n_bins if isinstance(b, NUMBERED) else occupied(b) for b in binnings]
    return BinSensitivity(
        bins=tuple(map(name_of, binnings)), size=np.array(sizes), estimate=estimate,
        null_mean=mean, low=low, high=high, pvalue=pvalue, distance=name_of(distance), level=level,
        n_resamples=max(test.n_resamples for test in tests),
        ended=ending(*(test.ended for test in tests)), **view.facts,
    )  # fmt: skip
