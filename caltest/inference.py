"""The verb that tests one aspect of calibration, or several together."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from functools import partial
from typing import Any, Literal, overload

import numpy as np

from caltest._version import __version__
from caltest.errors import DegenerateDataWarning, SparseBinsWarning, StatisticError
from caltest.exact import MAX_CELLS, MAX_ENUMERATION, cell_null, enumerated_null, n_label_vectors
from caltest.lenses import Lens, Relabelling, TopK, apply
from caltest.multiplicity import max_t
from caltest.nulls import ExactNull, NullDistribution, SimulatedNull
from caltest.predictions import FloatArray, IntArray, Predictions
from caltest.resampling import (
    EXCEEDING,
    ConsistencyResampling,
    RedrawLabels,
    Resampler,
    Workers,
    on_data,
    on_labels,
    simulate,
    simulate_by,
)
from caltest.results import CalibrationTestResult, JointTestResult
from caltest.statistics import ECE, Statistic, given

#: Rows per occupied cell below which consistency resampling is not to be trusted.
MIN_ROWS_PER_CELL = 20

Null = Literal["auto", "exact"] | Resampler


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
    null : {"auto", "exact"}, RedrawLabels or ConsistencyResampling, default "auto"
        ``"exact"`` computes the null distribution without simulation: for a two-class induced
        problem and a binned statistic, or for problems of at most 2²⁰ label vectors.
        ``RedrawLabels()`` simulates labels and is valid always. ``"auto"`` computes where that is
        cheap, up to 128 occupied cells or ``n_resamples`` label vectors, and else redraws labels.
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
    data = Predictions.of(probs, labels)
    if isinstance(statistic, str) or not (callable(statistic) or isinstance(statistic, Sequence)):
        raise StatisticError(
            f"statistic must be a statistic such as ECE(15), a function, or a list of (statistic, "
            f"lens) pairs, not {statistic!r}"
        )
    if isinstance(statistic, Sequence):
        return _joint_test(data, statistic, n_resamples, rng, workers)
    if stop not in (None, "early"):
        raise StatisticError(f"stop must be 'early' or None, not {stop!r}")
    induced = apply(lens, data)
    fixed, estimate = _evaluated(statistic, induced)
    law = _null_distribution(
        statistic, fixed, induced, estimate, null, n_resamples, rng, workers, stop == "early"
    )
    name = (
        "exact" if isinstance(law, ExactNull) else repr(RedrawLabels() if null == "auto" else null)
    )
    result = _result(data, induced, statistic, lens, name, estimate, law, rng)
    if result.null_std == 0.0:
        warnings.warn(
            "the null distribution is a single value: with these predictions a calibrated model "
            "can show nothing else, so the test says nothing",
            DegenerateDataWarning,
            stacklevel=2,
        )
    return result


def _result(
    data: Predictions,
    induced: Predictions,
    statistic: Statistic,
    lens: Lens,
    null: str,
    estimate: float,
    law: NullDistribution,
    rng: Any,
) -> CalibrationTestResult:
    """Put together the answer; here is the arithmetic of p-values."""
    drawn, error, ended = 0, 0.0, "complete"
    if isinstance(law, SimulatedNull):
        drawn, ended = len(law), law.ended
        exceeding = EXCEEDING if ended == "early" else round(law.sf(estimate) * drawn)
        pvalue = exceeding / drawn if ended == "early" else (1 + exceeding) / (1 + drawn)
        error = float(np.sqrt(pvalue * (1.0 - pvalue) / drawn))
        bracket = _clopper_pearson(exceeding, drawn)
    else:
        assert isinstance(law, ExactNull)
        bracket = law.bracket(estimate)
        pvalue = max(bracket[1], np.finfo(float).tiny)
    return CalibrationTestResult(
        statistic=_name(statistic),
        lens=_name(lens),
        null=null,
        estimate=estimate,
        pvalue=float(pvalue),
        pvalue_bracket=bracket,
        pvalue_error=error,
        null_mean=law.mean(),
        null_std=law.std(),
        n=induced.n,
        n_classes=data.n_classes,
        n_resamples=drawn,
        seed=int(rng) if isinstance(rng, (int, np.integer)) else None,
        impossible=induced.impossible.size,
        ended=ended,
        notes=data.notes,
        version=__version__,
        null_distribution=law,
    )


def _joint_test(
    data: Predictions,
    pairs: Sequence[tuple[Statistic, Lens]],
    n_resamples: int,
    rng: Any,
    workers: Workers,
) -> JointTestResult:
    """Test all pairs on labels redrawn from the whole vectors.

    O(B n) per pair; a user's lens is first applied K times, to learn what it makes of each class.
    """
    if not pairs:
        raise StatisticError("the list of (statistic, lens) pairs is empty")
    induced = [apply(lens, data) for _, lens in pairs]
    evaluated = [_evaluated(s, seen) for (s, _), seen in zip(pairs, induced, strict=True)]
    estimates = [estimate for _, estimate in evaluated]
    parts = [
        (fixed, _relabelling(lens, data, seen))
        for (_, lens), (fixed, _), seen in zip(pairs, evaluated, induced, strict=True)
    ]
    values, ended = simulate(
        partial(_jointly, parts), RedrawLabels().sampler(data), n_resamples, rng, workers
    )
    tests = tuple(
        _result(
            data, seen, statistic, lens, repr(RedrawLabels()), t, SimulatedNull(column, ended), rng
        )
        for (statistic, lens), seen, t, column in zip(
            pairs, induced, estimates, values.T.copy(), strict=True
        )
    )
    adjusted = tuple(max_t(np.array(estimates), values))
    return JointTestResult(tests, adjusted, min(adjusted), len(values), ended, __version__)


def _relabelling(lens: Lens, data: Predictions, seen: Predictions) -> Relabelling:
    """Return the function from labels to induced labels; of a user's lens, by asking for each."""
    own: Any = getattr(lens, "relabelling", None)
    if own is not None:
        known: Relabelling = own(data)
        return known
    backwards = apply(lens, Predictions(data.probs[::-1], data.labels[::-1]))
    if seen.n != data.n or not np.array_equal(backwards.probs[::-1], seen.probs):
        raise StatisticError(
            f"the lens {_name(lens)} picks or moves rows; tests on the same draws need a lens that "
            "treats every row by itself"
        )
    every = [np.full(data.n, k, dtype=np.int64) for k in range(data.n_classes)]
    table = np.column_stack([apply(lens, Predictions(data.probs, k)).labels for k in every])
    return partial(_looked_up, table)


def _looked_up(table: IntArray, labels: IntArray) -> IntArray:
    return table[np.arange(labels.size), labels]


def _jointly(parts: list[tuple[Any, Relabelling]], draw: tuple[FloatArray, IntArray]) -> FloatArray:
    return np.array([fixed(relabelled(draw[1])) for fixed, relabelled in parts])


def _name(value: Any) -> str:
    return getattr(value, "__name__", None) or repr(value)


def _evaluated(statistic: Statistic, induced: Predictions) -> tuple[Any, float]:
    """Return the statistic with its predictions fixed, and its value on the observed labels."""
    try:
        fixed: Any = given(statistic, induced.probs)
        value = float(getattr(fixed, "evaluate", fixed)(induced.labels))
    except TypeError as error:
        raise StatisticError(
            f"the statistic {_name(statistic)} failed on probs of shape {induced.probs.shape} and "
            f"labels of shape {induced.labels.shape}: {error}"
        ) from error
    if not np.isfinite(value):
        raise StatisticError(
            f"the statistic {_name(statistic)} is {value} on the observed data; it must be a "
            "finite number"
        )
    return fixed, value


def _null_distribution(
    statistic: Statistic,
    fixed: Any,
    induced: Predictions,
    estimate: float,
    null: Null,
    n_resamples: int,
    rng: Any,
    workers: Workers,
    stop_early: bool,
) -> NullDistribution:
    known = null in ("auto", "exact") if isinstance(null, str) else hasattr(null, "sampler")
    if not known or isinstance(null, type):
        raise StatisticError(
            f"null must be 'auto', 'exact', RedrawLabels() or ConsistencyResampling(), not {null!r}"
        )
    if isinstance(null, str):
        cells = fixed.starts.size - 1 if hasattr(fixed, "term") else np.inf
        if induced.n_classes == 2 and cells <= (MAX_CELLS if null == "auto" else induced.n):
            return cell_null(fixed, induced.probs, estimate)
        limit = MAX_ENUMERATION if null == "exact" else n_resamples
        if n_label_vectors(induced.probs) <= limit:
            return enumerated_null(getattr(fixed, "evaluate", fixed), induced.probs)
        if null == "exact":
            raise StatisticError(
                f"there is no exact null for {_name(statistic)} with {induced.n} rows of "
                f"{induced.n_classes} classes: it needs a two-class lens and a binned statistic, "
                "or very few rows. Use null=RedrawLabels(), which is valid always"
            )
        null = RedrawLabels()
    if isinstance(null, ConsistencyResampling):
        _warn_if_sparse(fixed)
    stop_at = estimate if stop_early else None
    shortcut = null.shortcut(fixed, induced.probs)
    if shortcut is not None:
        return SimulatedNull(*simulate_by(shortcut, n_resamples, rng, workers, stop_at=stop_at))
    evaluate = on_labels(fixed) if null.fixes_predictions else on_data(statistic)
    return SimulatedNull(
        *simulate(evaluate, null.sampler(induced), n_resamples, rng, workers, stop_at=stop_at)
    )


def _warn_if_sparse(fixed: Any) -> None:
    counts = getattr(fixed, "counts", None)
    if counts is not None and counts.mean() < MIN_ROWS_PER_CELL:
        warnings.warn(
            f"only {counts.mean():.1f} rows per occupied cell: consistency resampling rejects "
            "calibrated models too often below 20 (up to always at 1). Use null=RedrawLabels(), "
            "which is valid at every sample size, or fewer bins",
            SparseBinsWarning,
            stacklevel=4,
        )


def _clopper_pearson(successes: int, trials: int, level: float = 0.99) -> tuple[float, float]:
    from scipy.special import betaincinv

    tail = (1.0 - level) / 2.0
    low = betaincinv(successes, trials - successes + 1, tail) if successes else 0.0
    high = betaincinv(successes + 1, trials - successes, 1.0 - tail) if successes < trials else 1.0
    return float(low), float(high)
