"""The verb that says how large the error may be."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, Literal

import numpy as np

from caltest._version import __version__
from caltest.checks import fraction, one_of, whole
from caltest.errors import StatisticError
from caltest.inference.inversion import SQUARED
from caltest.inference.methods import (
    BOOTSTRAP,
    Answer,
    Asked,
    Target,
    by_bootstrap,
    by_cells,
    by_inversion,
    by_normal,
    by_sun,
    target_of,
)
from caltest.inference.parts import evaluated, unseen
from caltest.lenses import Lens, TopK, apply
from caltest.predictions import IntArray
from caltest.resampling import Workers
from caltest.results import ConfidenceIntervalResult
from caltest.statistics import ECE, Statistic
from caltest.written import name_of

Method = Literal[
    "auto", "inversion", "percentile", "basic", "bca", "bias-corrected", "normal", "sun"
]
Side = Literal["two-sided", "lower", "upper"]
SIDES = ("two-sided", "lower", "upper")
METHODS = ("auto", "inversion", *BOOTSTRAP, "normal", "sun")


def confidence_interval(
    probs: Any,
    labels: Any = None,
    statistic: Statistic = ECE(),
    *,
    lens: Lens = TopK(1),
    level: float = 0.95,
    method: Method = "auto",
    side: Side = "two-sided",
    groups: Any = None,
    n_resamples: int = 9999,
    rng: Any = None,
    workers: Workers = 1,
) -> ConfidenceIntervalResult:
    """Return an interval for a calibration error, which covers when the model is calibrated, too.

    What is covered is the binned error Σ_b π_b d(r_b, g_b) of new data in the cells of the
    statistic: a lower bound of the true error, for fixed cells (Vaicenavicius et al. 2019, Theorem
    2). For a calibrated model that is 0, and the interval usually contains 0.

    Parameters
    ----------
    probs : array_like of shape (n,) or (n, K), or Predictions
        Predicted probabilities; see :meth:`Predictions.of`.
    labels : array_like of shape (n,)
        Observed classes; left out when ``probs`` is a :class:`Predictions`.
    statistic : callable, default ECE(UniformBins(15), distance="tv")
        A statistic of caltest or any function ``(probs, labels) -> float``.
    lens : callable, default TopK(1)
        Which aspect is asked about.
    level : float, default 0.95
        Probability with which such an interval contains the error.
    method : str, default "auto"
        ``"auto"`` inverts tests, for ``ECE``, ``DebiasedL1``, ``DebiasedL2`` and, for two classes,
        ``RMSCE`` and ``MCE``; for other statistics no method is known to be valid and one has to
        be named. See Notes for all of them.
    side : {"two-sided", "lower", "upper"}, default "two-sided"
        Which bounds; one alone has the whole error probability.
    groups : array_like of shape (n,), optional
        The cluster of every row, by number or name, such as the patient. Rows of a cluster may
        depend on each other, clusters may not. With 10, 30 and 60 clusters of 1000 rows in all, 95
        to 100 % of 95 % intervals covered; with strong dependence and 6 clusters, 11 % of them lay
        too high for a calibrated model: take at least 20.
    n_resamples : int, default 9999
        Draws of cell sums (fewer for very many cells) or bootstrap samples.
    rng : None, int, Generator or SeedSequence
        As :func:`numpy.random.default_rng`.
    workers : int or callable, default 1
        Threads, or a function like :func:`map`, for the bootstrap.

    Returns
    -------
    ConfidenceIntervalResult
        With ``estimate``, ``low``, ``high``, ``bias``, ``null_bias`` and ``corrected``.

    Raises
    ------
    InvalidPredictionsError
        When probs and labels are not a forecast and its outcomes.
    StatisticError
        When the method does not fit the statistic, or ``level``, ``side`` or ``groups`` the data.

    Notes
    -----
    Share of 95 % intervals that covered in the 25 scenarios of the coverage study (docs/coverage),
    smallest to largest; "calibrated" are the 8 of calibrated models:

    ====================  =====================  =====================  =========================
    method                ``ECE``                ``DebiasedL2``         remarks
    ====================  =====================  =====================  =========================
    ``"inversion"``       0.96–1.00              0.91–1.00              ``MCE`` 0.95–1.00
    ``"normal"``          –                      0.80–1.00              short; sparse cells fail
    ``"sun"``             –                      0.80–1.00              the same; ``TopK(k)`` only
    ``"percentile"``      0–0.97                 0–1.00                 ``ECE``, calibrated: 0
    ``"bca"``             0–0.97                 0–0.95                 ``ECE``, calibrated: 0
    ``"basic"``           0–1.00                 0.03–0.95              calibrated: 0–0.85
    ``"bias-corrected"``  0–1.00                 0.05–0.96              calibrated: 0–0.96
    ====================  =====================  =====================  =========================

    The bootstrap is meant for statistics that are averages, such as a proper score.

    0 is in the interval of ``"inversion"`` exactly if the test of calibration has a p-value above
    (1 − level)/2. For two classes, no clusters and at most 24 cells that is the exact p-value of
    :func:`calibration_test` with ``ECE`` in these cells, else one from the draws of the interval.

    Cost: O(n K) and some milliseconds for inversion, O(B n) for the bootstrap.

    References
    ----------
    Efron, "Better bootstrap confidence intervals", JASA 1987. Kumar et al., "Verified uncertainty
    calibration", NeurIPS 2019. Sun et al., "A confidence interval for the l2 expected calibration
    error", arXiv 2408.08998, 2024.

    Examples
    --------
    >>> import caltest as ct
    >>> data = ct.examples.digits("best")
    >>> interval = confidence_interval(data, rng=1)
    >>> round(interval.estimate, 3), interval.contains_zero
    (0.057, False)
    """
    data = unseen(probs, labels)
    fraction("level", level)
    one_of("method", method, METHODS)
    one_of("side", side, SIDES)
    whole("n_resamples", n_resamples)
    induced = apply(lens, data)
    _, estimate = evaluated(statistic, induced)
    asked = Asked(
        statistic=statistic,
        lens=lens,
        induced=induced,
        estimate=estimate,
        target=target_of(statistic, induced.n_classes),
        groups=_clusters(groups, induced.n),
        level=float(level),
        side=side,
        n_resamples=n_resamples,
        rng=rng,
        workers=workers,
    )
    answer = _methods(asked, method)[method](asked)
    low, high = (_within(bound, asked.target) for bound in (answer.low, answer.high))
    return ConfidenceIntervalResult(
        statistic=name_of(statistic),
        lens=name_of(lens),
        method=answer.method,
        estimate=answer.estimate,
        low=low if side != "upper" else _within(-np.inf, asked.target),
        high=high if side != "lower" else _within(np.inf, asked.target),
        level=float(level),
        side=side,
        null_bias=answer.null_bias,
        bias=answer.estimate - answer.corrected,
        corrected=answer.corrected,
        contains_zero=answer.contains_zero,
        pvalue=answer.pvalue,
        n=induced.n,
        n_classes=data.n_classes,
        n_cells=answer.n_cells,
        n_groups=None if asked.groups is None else int(asked.groups.max()) + 1,
        n_resamples=answer.n_draws,
        seed=int(rng) if isinstance(rng, (int, np.integer)) else None,
        notes=(*data.notes, *answer.notes),
        version=__version__,
    )


def _methods(asked: Asked, method: str) -> dict[str, Callable[[Asked], Answer]]:
    """Return the methods that fit the statistic, and refuse one that is not among them."""
    fitting: dict[str, Callable[[Asked], Answer]] = {
        name: partial(by_bootstrap, method=name) for name in BOOTSTRAP
    }
    target = asked.target
    if target is not None and target.size is None and asked.groups is None:
        fitting["auto"] = fitting["inversion"] = by_cells
    elif target is not None and target.size is not None:
        fitting["auto"] = fitting["inversion"] = by_inversion
        if target.size is SQUARED:
            fitting |= {"normal": by_normal, "sun": by_sun}
    if method not in fitting:
        names = ", ".join(map(repr, fitting))
        raise StatisticError(
            f"no interval of {name_of(asked.statistic)} for {asked.induced.n_classes} classes"
            f"{' in clusters' if asked.groups is not None else ''} is known to cover by "
            f"{method!r}; choose one of {names} and read what is said about it, or use "
            "ECE(bins) or DebiasedL2(bins), for which method='auto' covers"
        )
    return fitting


def _clusters(groups: Any, n: int) -> IntArray | None:
    """Number the clusters of the rows."""
    if groups is None:
        return None
    names = np.asarray(groups)
    if names.shape != (n,):
        raise StatisticError(
            f"groups must name the cluster of each of the {n} rows; its shape is {names.shape}"
        )
    codes: IntArray = np.unique(names, return_inverse=True)[1].astype(np.int64)
    if codes.max() < 1:
        raise StatisticError("an interval from clusters needs at least two of them")
    return codes


def _within(bound: float, target: Target | None) -> float | None:
    """Cut a bound to the range of the error; None where it is open and the range not known."""
    if target is not None:
        return float(min(max(bound, 0.0), target.largest))
    return float(bound) if np.isfinite(bound) else None
