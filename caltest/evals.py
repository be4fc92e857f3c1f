"""Metrics for harnesses that evaluate language models: lm-evaluation-harness and Inspect.

None of them ends an evaluation: a metric that cannot be measured is NaN, with an
``UnmeasuredWarning`` that says why.
"""

import inspect
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import numpy as np

from caltest.errors import InvalidPredictionsError, or_nan
from caltest.inference import calibration_test
from caltest.results import CalibrationTestResult
from caltest.statistics import ECE, Statistic

if TYPE_CHECKING:
    from inspect_ai.scorer import Metric, SampleScore

#: What lm-evaluation-harness collects of a question: the answer's number, and log-likelihoods.
ChoiceItem = tuple[int, Sequence[float]]


def calibration_items(loglikelihoods: Sequence[float], answer: int) -> dict[str, ChoiceItem]:
    """Return the values that a multiple-choice task hands to the three metrics of this module.

    ``loglikelihoods`` (K,) belong to the K options of a question, and ``answer`` is the index of
    the right option, from 0. The dict has the keys "calibration_error", "noise_floor" and
    "calibration_pvalue", each with the same pair (answer, log-likelihoods). A task's
    ``process_results(doc, results)`` returns it, with ``[r[0] for r in results]`` as
    log-likelihoods; ``metric_list`` names the three, each with the function of that name as its
    ``aggregation``.
    """
    question = (int(answer), [float(value) for value in loglikelihoods])
    return dict.fromkeys(("calibration_error", "noise_floor", "calibration_pvalue"), question)


def calibration_error(items: Sequence[ChoiceItem]) -> float:
    """Return the ECE of the most likely option over all questions, from 0 to 1, or NaN.

    ``items`` are pairs (index of the right option, log-likelihoods of the options), one for each
    question. The softmax over a question's options makes its log-likelihoods probabilities.
    Questions may have different numbers of options: the event is that the most likely one is right.
    O(n). NaN, with an ``UnmeasuredWarning``, without questions, for log-likelihoods that are not
    finite and for an index that is no option.
    """
    return or_nan(lambda: _test_of_questions(items).estimate, np.nan, "calibration_error")


def noise_floor(items: Sequence[ChoiceItem]) -> float:
    """Return the mean ECE of a calibrated model with these predictions, from 0 to 1, or NaN.

    It is the mean of :func:`calibration_error` under the null distribution. ``items`` are pairs
    (index of the right option, log-likelihoods of the options), one for each question. NaN, with an
    ``UnmeasuredWarning``, where the error cannot be measured.
    """
    return or_nan(lambda: _test_of_questions(items).null_mean, np.nan, "noise_floor")


def calibration_pvalue(items: Sequence[ChoiceItem]) -> float:
    """Return the exact p-value of the test that the confidences are calibrated, in (0, 1], or NaN.

    The test statistic is :func:`calibration_error`, the ECE of the most likely option. ``items``
    are pairs (index of the right option, log-likelihoods of the options), one for each question.
    NaN, with an ``UnmeasuredWarning``, where the error cannot be measured.
    """
    return or_nan(lambda: _test_of_questions(items).pvalue, np.nan, "calibration_pvalue")


def _test_of_questions(items: Sequence[ChoiceItem]) -> CalibrationTestResult:
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
    return calibration_test(confidence, right, as_is=True)


#: Numbers of the metric of Inspect, with the fields of a test that they are.
OF_INSPECT = {
    "calibration_error": "estimate", "noise_floor": "null_mean", "noise_sd": "null_std",
    "calibration_pvalue": "pvalue",
}  # fmt: skip


def inspect_calibration(
    confidence: str = "confidence", *, cluster: str | None = None,
    statistic: Statistic | None = None,
) -> "Metric":  # fmt: skip
    """Return a metric of Inspect for scorers that note how sure the model is of its answer.

    Every epoch of a sample is an outcome with its own stated confidence, whatever the reducer of
    the task is; the epochs of one sample are a cluster, since they may depend on each other.

    Parameters
    ----------
    confidence : str, default "confidence"
        Key in ``Score.metadata`` of the stated probability that the answer is right, from 0 to 1.
    cluster : str, optional
        Key in the metadata of samples that says which of them belong together. By default samples
        are independent.
    statistic : Statistic, optional
        By default ``ECE()``.

    Returns
    -------
    Metric
        A dict of ``calibration_error``, ``noise_floor``, ``noise_sd`` and ``calibration_pvalue``.
        All four are NaN, with an ``UnmeasuredWarning``, where a sample has no confidence or
        cluster or is scored as partly right, or clusters are too few for a test (Inspect asks
        about the samples so far while it runs). Unscored samples are left out and counted by
        Inspect.

    Raises
    ------
    ImportError
        Without Inspect, or with one older than 0.3.285, which hands over reduced scores only.
    """
    try:
        # Inspect evaluates the annotations of a metric, so they are names of this function.
        from inspect_ai.scorer import SampleScore, metric, value_to_float
    except ImportError as error:
        raise ImportError(
            "inspect_calibration needs Inspect: pip install 'caltest[inspect]'"
        ) from error
    if "scores" not in inspect.signature(metric).parameters:
        raise ImportError(
            "this Inspect hands metrics the mean over epochs only: pip install -U inspect_ai"
        )
    said: set[str] = set()

    def ask(scores: list[SampleScore]) -> dict[str, float]:
        right = np.array([value_to_float()(score.score.value) for score in scores])
        wrong = np.flatnonzero((right != 0.0) & (right != 1.0))
        if wrong.size:
            raise InvalidPredictionsError(
                f"sample {scores[wrong[0]].sample_id} is scored {right[wrong[0]]}: calibration asks"
                " whether an answer is right, 0 or 1"
            )
        stated = [_noted(score, score.score.metadata, confidence) for score in scores]
        samples = [str(score.sample_id) for score in scores]
        clusters: list[object] | None = None
        if cluster:
            clusters = [_noted(score, score.sample_metadata, cluster) for score in scores]
        elif len({*samples}) < len(samples):  # several epochs
            clusters = [*samples]
        test = calibration_test(
            np.array(stated, dtype=float), right.astype(bool), statistic or ECE(),
            clusters=clusters, as_is=True,
        )  # fmt: skip
        return {name: float(getattr(test, of)) for name, of in OF_INSPECT.items()}

    def compute(scores: list[SampleScore]) -> dict[str, float]:
        return or_nan(lambda: ask(scores), dict.fromkeys(OF_INSPECT, np.nan), "calibration", said)

    make: Callable[[], Metric] = metric(name="calibration", scores="unreduced")(lambda: compute)
    return make()


def _noted(score: "SampleScore", facts: dict[str, object] | None, key: str) -> object:
    if facts is None or facts.get(key) is None:
        raise InvalidPredictionsError(f"sample {score.sample_id} has no {key!r} in its metadata")
    return facts[key]
