"""The verb that tests one aspect of calibration, or several together."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any, Literal, overload

from caltest.checks import one_of
from caltest.errors import DegenerateDataWarning, StatisticError
from caltest.inference.joint import joint_test
from caltest.inference.laws import Null, null_distribution
from caltest.inference.parts import evaluated, result_of, unseen
from caltest.lenses import Lens, TopK, apply
from caltest.nulls import ExactNull
from caltest.resampling import RedrawLabels, Workers
from caltest.results import CalibrationTestResult, JointTestResult
from caltest.statistics import ECE, Statistic


@overload
def calibration_test(
    probs: Any,
    labels: Any = None,
    statistic: Statistic = ECE(),
    *,
    lens: Lens = TopK(1),
    null: Null = "auto",
    n_resamples: int = 9999,
    stop: Literal["early"] | None = None,
    rng: Any = None,
    workers: Workers = 1,
) -> CalibrationTestResult: ...


@overload
def calibration_test(
    probs: Any,
    labels: Any,
    statistic: Sequence[tuple[Statistic, Lens]],
    *,
    n_resamples: int = 9999,
    rng: Any = None,
    workers: Workers = 1,
) -> JointTestResult: ...


def calibration_test(
    probs: Any,
    labels: Any = None,
    statistic: Statistic | Sequence[tuple[Statistic, Lens]] = ECE(),
    *,
    lens: Lens = TopK(1),
    null: Null = "auto",
    n_resamples: int = 9999,
    stop: Literal["early"] | None = None,
    rng: Any = None,
    workers: Workers = 1,
) -> CalibrationTestResult | JointTestResult:
    """Test whether predictions are calibrated, through a lens and by a statistic.

    The hypothesis is that given the predictions seen through the lens, labels are drawn from them.
    The p-value is the probability that a model for which this is true shows at least the observed
    statistic on the same predictions.

    Parameters
    ----------
    probs : array_like of shape (n,) or (n, K), or Predictions
        Predicted probabilities; see :meth:`Predictions.of`.
    labels : array_like of shape (n,)
        Observed classes; left out when ``probs`` is a :class:`Predictions`.
    statistic : callable, default ECE(UniformBins(15), distance="tv")
        A statistic of caltest or any function ``(probs, labels) -> float`` of the induced problem;
        large values speak against calibration. A list of ``(statistic, lens)`` pairs runs all of
        them on the same redrawn labels and returns a :class:`JointTestResult`, whose p-values are
        adjusted for their number by the step-down max-T of Westfall & Young (1993); ``lens``,
        ``null`` and ``stop`` are then not used.
    lens : callable, default TopK(1)
        Which aspect is asked about: a lens of caltest or any function from predictions to
        predictions.
    null : {"auto", "exact", "asymptotic", …}, RedrawLabels or ConsistencyResampling, default "auto"
        ``"exact"`` computes the null distribution without simulation: for a two-class induced
        problem and a binned statistic, or for problems of at most 2²⁰ label vectors.
        ``RedrawLabels()`` simulates labels and is valid always. ``"auto"`` computes where that is
        cheap, up to 128 occupied cells or ``n_resamples`` label vectors, and else redraws labels.
        ``"asymptotic"``, for statistics that have one, is their classical limit law: quick, and
        only as valid as the limit is near.
    n_resamples : int, default 9999
        Replicates of a simulated null; the most there can be with ``stop="early"``.
    stop : {"early"}, optional
        End a simulation as soon as 20 replicates are at least as large as the estimate, with
        p = 20 / (number drawn), which is valid as it is (Besag & Clifford 1991). Clear cases of
        calibration then cost some dozens of replicates.
    rng : None, int, Generator or SeedSequence
        As :func:`numpy.random.default_rng`.
    workers : int or callable, default 1
        Threads, or a function like :func:`map`.

    Returns
    -------
    CalibrationTestResult
        Or a :class:`JointTestResult` for a list of pairs.

    Raises
    ------
    InvalidPredictionsError
        When probs and labels are not a forecast and its outcomes.
    StatisticError
        When the statistic is not a finite number, or lens, bins and null do not fit the data.

    Warns
    -----
    SparseBinsWarning
        With ``ConsistencyResampling()`` and fewer than 20 rows per occupied cell.
    DegenerateDataWarning
        When a calibrated model could show one value of the statistic only.

    Notes
    -----
    Validity: observations are independent, and labels were not used to make the predictions.
    Given the predictions, observed and redrawn labels are then exchangeable, so that
    P(p ≤ α) ≤ α at every n, K and partition.

    References
    ----------
    Vaicenavicius et al., "Evaluating model calibration in classification", AISTATS 2019, §4.3.

    Examples
    --------
    >>> import caltest as ct
    >>> rained, forecast = [1] * 18 + [0] * 12, [0.8] * 30
    >>> result = ct.calibration_test(forecast, rained, lens=ct.OneVsRest(1))
    >>> round(result.estimate, 6), round(result.pvalue, 9)
    (0.2, 0.010731062)

    Two questions at once:

    >>> six = ct.examples.SixPoints().sample(600, rng=1)
    >>> pairs = [(ct.ECE(), ct.TopK(1)), (ct.ECE(ct.UniformBins(10)), ct.Canonical())]
    >>> [p < 0.05 for p in ct.calibration_test(six, None, pairs, n_resamples=999, rng=1).adjusted]
    [False, True]
    """
    data = unseen(probs, labels)
    if isinstance(statistic, str) or not (callable(statistic) or isinstance(statistic, Sequence)):
        raise StatisticError(
            f"statistic must be a statistic such as ECE(15), a function, or a list of (statistic, "
            f"lens) pairs, not {statistic!r}"
        )
    if isinstance(statistic, Sequence):
        return joint_test(data, statistic, n_resamples, rng, workers)
    one_of("stop", stop, ("early", None))
    induced = apply(lens, data)
    fixed, estimate = evaluated(statistic, induced)
    law = null_distribution(
        statistic, fixed, induced, estimate, null, n_resamples, rng, workers, stop == "early"
    )
    if isinstance(law, ExactNull):
        null = "exact"
    elif null == "auto":
        null = RedrawLabels()
    name = null if isinstance(null, str) else repr(null)
    result = result_of(data, induced, statistic, lens, name, estimate, law, rng)
    if result.null_std == 0.0:
        warnings.warn(
            "the null distribution is a single value: with these predictions a calibrated model "
            "can show nothing else, so the test says nothing",
            DegenerateDataWarning,
            stacklevel=2,
        )
    return result
