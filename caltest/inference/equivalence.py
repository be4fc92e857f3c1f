"""The verb that says whether an error is small enough."""

from __future__ import annotations

from typing import Unpack

from caltest._base.arrays import RNG
from caltest._base.checks import fraction, number
from caltest._base.defaults import N_RESAMPLES
from caltest._base.written import name_of
from caltest.errors import StatisticError
from caltest.inference.admission import ROWS, checked
from caltest.inference.interval_methods import about_cells, largest_above, noise_of
from caltest.inference.intervals import interval_problem
from caltest.inference.inversion import SIZES
from caltest.lenses import LensLike
from caltest.predictions import Facts
from caltest.results import EquivalenceTestResult
from caltest.simulate import Run, Workers
from caltest.statistics import ECE, StatisticLike


def equivalence_test(
    probs: object,
    labels: object = None,
    statistic: StatisticLike = ECE(),
    *,
    tolerance: float,
    lens: LensLike | None = None,
    alpha: float = 0.05,
    n_resamples: int = N_RESAMPLES,
    rng: RNG = None,
    workers: Workers = 1,
    **facts: Unpack[Facts],
) -> EquivalenceTestResult:
    """Test whether a calibration error is within a tolerance.

    The hypothesis is H₀: error ≥ ``tolerance``, so that a small p-value is evidence *for*
    calibration to within it: the chance, at such an error, of an observed one as small as this.
    Inverted, the test gives the upper bound of :func:`confidence_interval` with ``side="upper"``
    and ``level`` 1 − ``alpha``: the smallest tolerance that it accepts.

    Parameters
    ----------
    probs, labels, lens, n_resamples, rng, workers, **facts
        As in :func:`confidence_interval`; ``by`` is refused.
    statistic : Statistic, default ECE(UniformBins(15))
        ``ECE``, ``DebiasedL1``, ``DebiasedL2`` and, for two classes, ``RMSCE`` and ``MCE``, each in
        its own unit: that of ``DebiasedL2`` is squared.
    tolerance : float
        The error that is small enough, greater than 0. Choose it before the data are seen.
    alpha : float, default 0.05
        Chance of accepting an error of the tolerance.

    Raises
    ------
    StatisticError
        When no upper bound of the statistic is known to hold, or an argument is out of range.

    Notes
    -----
    The error is that of the cells of the statistic, in new data; errors of opposite sign cancel
    within a cell. O(n K) and some milliseconds.

    References
    ----------
    Wellek, *Testing Statistical Hypotheses of Equivalence and Noninferiority*, 2010. Dimitriadis et
    al., "Honest calibration assessment for binary outcome predictions", Biometrika 2023.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(1)
    >>> p = rng.random(5000)
    >>> test = equivalence_test(p, rng.random(5000) < p, tolerance=0.05, rng=1)
    >>> test.equivalent, round(test.smallest_tolerance, 3)
    (True, 0.021)
    """
    data = checked("equivalence_test", probs, labels, facts, ROWS, lens)
    fraction("alpha", alpha)
    number("tolerance", tolerance, 0.0, float("inf"))
    run = Run(n_resamples=n_resamples, rng=rng, workers=workers)
    request = interval_problem("equivalence_test", data, statistic, lens, 1.0 - alpha, "upper", run)
    estimand = request.prepared.estimand
    largest = estimand is not None and estimand.size == "largest"
    unknown = estimand is None or request.prepared.cells is None
    weighted = request.prepared.problem.weight is not None
    if unknown or (largest and (request.designed or weighted)):
        raise StatisticError(
            f"no upper bound of {name_of(statistic)} is known to hold for these data: take "
            "ECE(bins) or DebiasedL2(bins)"
        )
    if tolerance > request.estimand.largest:
        raise StatisticError(
            f"tolerance is {tolerance:g}, but no error is larger than "
            f"{request.estimand.largest:g}: one of 5 % is 0.05"
        )
    # The largest gap has exact limits, cell by cell; sums of errors are read off drawn noise
    noise = None if largest else noise_of(request)
    above = largest_above(request) if noise is None else SIZES[request.estimand.size].above(noise)
    return request.analysis.result(
        EquivalenceTestResult,
        statistic,
        prepared=request.prepared,
        estimate=request.estimate,
        tolerance=float(tolerance),
        pvalue=above.pvalue(request.estimand.unscaled(float(tolerance))),
        smallest_tolerance=min(
            request.estimand.scaled(above.high(request.alpha)), request.estimand.largest
        ),
        alpha=float(alpha),
        n_resamples=0 if noise is None else noise.shares.size,
        notes=() if noise is None else about_cells(noise),
    )
