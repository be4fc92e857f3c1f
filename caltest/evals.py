"""Metrics for harnesses that evaluate language models: lm-evaluation-harness and Inspect."""

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from caltest.errors import InvalidPredictionsError, StatisticError
from caltest.inference import calibration_test
from caltest.results import CalibrationTestResult
from caltest.statistics import ECE, Statistic

if TYPE_CHECKING:
    from inspect_ai.scorer import Metric

#: What lm-evaluation-harness collects of a question: the answer's number, and log-likelihoods.
Question = tuple[int, Sequence[float]]


def calibration_items(loglikelihoods: Sequence[float], answer: int) -> dict[str, Question]:
    """Return what a task of multiple choice hands to the three metrics of this module.

    ``process_results(doc, results)`` of a task returns it, with ``[r[0] for r in results]`` and
    the number of the right option, from 0; ``metric_list`` names the three, each with the
    function of that name as its ``aggregation``.
    """
    question = (int(answer), [float(value) for value in loglikelihoods])
    return dict.fromkeys(("calibration_error", "noise_floor", "calibration_pvalue"), question)


def calibration_error(items: Sequence[Question]) -> float:
    """Return the ECE of the most likely option over all questions, from 0 to 1.

    The softmax over a question's options makes its log-likelihoods probabilities. Questions may
    have different numbers of options: the event is that the most likely one is right. O(n).
    """
    return _test_of_questions(items).estimate


def noise_floor(items: Sequence[Question]) -> float:
    """Return the mean :func:`calibration_error` of calibrated models with these predictions."""
    return _test_of_questions(items).null_mean


def calibration_pvalue(items: Sequence[Question]) -> float:
    """Return the exact p-value of :func:`calibration_error`, in (0, 1]."""
    return _test_of_questions(items).pvalue


def _test_of_questions(items: Sequence[Question]) -> CalibrationTestResult:
    confidence, right = np.empty(len(items)), np.empty(len(items), dtype=bool)
    for i, (answer, loglikelihoods) in enumerate(items):
        scores = np.asarray(loglikelihoods, dtype=float)
        if not np.isfinite(scores).all() or not 0 <= answer < scores.size:
            raise InvalidPredictionsError(
                f"question {i + 1} has the answer {answer} and the log-likelihoods {scores}: finite"
                " numbers are needed, and the answer's number among them, from 0"
            )
        confidence[i] = 1.0 / np.exp(scores - scores.max()).sum()
        right[i] = scores.argmax() == answer
    return calibration_test(confidence, right, as_is=True)  # an error would end the harness


def inspect_calibration(
    confidence: str = "confidence", *, cluster: str | None = None,
    statistic: Statistic | None = None,
) -> "Metric":  # fmt: skip
    """Return a metric of Inspect for scorers that note how sure the model is of its answer.

    ``confidence`` is the key in ``Score.metadata`` of the stated probability of being right, from 0
    to 1, ``cluster`` that in the metadata of a sample that says which samples belong together,
    ``statistic`` by default ``ECE()``. Of n samples the metric is a dict of ``calibration_error``,
    ``noise_floor``, ``noise_sd`` and ``calibration_pvalue``, NaN where the clusters are too few for
    a test: while it runs, Inspect asks about the samples so far. ImportError without Inspect, which
    ``caltest[inspect]`` installs; InvalidPredictionsError for a sample without a confidence or
    cluster, or scored as partly right.
    """
    try:
        # Inspect evaluates the annotations of a metric, so they are names of this function.
        from inspect_ai.scorer import SampleScore, metric, value_to_float
    except ImportError as error:
        raise ImportError(
            "inspect_calibration needs Inspect: pip install 'caltest[inspect]'"
        ) from error
    number = value_to_float()

    def fact(score: SampleScore, facts: dict[str, object] | None, key: str) -> object:
        if facts is None or facts.get(key) is None:
            raise InvalidPredictionsError(
                f"sample {score.sample_id} has no {key!r} in its metadata"
            )
        return facts[key]

    def compute(scores: list[SampleScore]) -> dict[str, float]:
        right = np.array([number(score.score.value) for score in scores])
        for score, value in zip(scores, right, strict=True):
            if value not in (0.0, 1.0):
                raise InvalidPredictionsError(
                    f"sample {score.sample_id} is scored {value}: calibration asks whether an"
                    " answer is right, 0 or 1 (with several epochs, reduce them by mode)"
                )
        stated = [fact(score, score.score.metadata, confidence) for score in scores]
        clusters = cluster and [fact(score, score.sample_metadata, cluster) for score in scores]
        names = ("calibration_error", "noise_floor", "noise_sd", "calibration_pvalue")
        probs = np.array(stated, dtype=float)
        try:
            test = calibration_test(
                probs, right.astype(bool), statistic or ECE(), clusters=clusters, as_is=True
            )
        except StatisticError:  # an error would end an evaluation that has only begun
            return dict.fromkeys(names, np.nan)
        values = (test.estimate, test.null_mean, test.null_std, test.pvalue)
        return dict(zip(names, values, strict=True))

    make: Callable[[], Metric] = metric(name="calibration")(lambda: compute)
    return make()
