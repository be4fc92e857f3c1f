"""Metrics for harnesses of language models: by hand, and within them where they are installed."""

import gc
import json
import warnings

import numpy as np
import pytest

import caltest as ct
from caltest import evals
from caltest.errors import UnmeasuredWarning

METRICS = (evals.calibration_error, evals.noise_floor, evals.calibration_pvalue)


def questions(n=300, sharper=3.0):
    """Log-likelihoods of two to four options, sharper than what the answers were drawn from."""
    rng = np.random.default_rng(5)
    rows = []
    for i in range(n):
        scores = rng.normal(0.0, 1.5, 2 + i % 3)
        answer = rng.choice(scores.size, p=np.exp(scores) / np.exp(scores).sum())
        rows.append({"id": f"Q{i}", "scores": list(sharper * scores), "answer": int(answer)})
    return rows


def test_metrics_are_those_of_the_most_likely_option():
    rows = questions()
    shares = [np.exp(row["scores"]) / np.exp(row["scores"]).sum() for row in rows]
    right = [row["answer"] == share.argmax() for row, share in zip(rows, shares, strict=True)]
    test = ct.calibration_test([share.max() for share in shares], right)
    items = [evals.calibration_items(row["scores"], row["answer"])["noise_floor"] for row in rows]
    expected = [test.estimate, test.null_mean, test.pvalue]
    assert [metric(items) for metric in METRICS] == pytest.approx(expected, rel=1e-9)
    assert test.pvalue < 1e-6


@pytest.mark.parametrize("wrong", [(4, [0.0, 1.0]), (0, [np.nan, 1.0]), (-1, [0.0, 1.0])])
@pytest.mark.parametrize("metric", METRICS)
def test_a_question_that_cannot_be_measured_is_nan_and_one_warning(metric, wrong):
    rows = questions(20)
    items = [evals.calibration_items(row["scores"], row["answer"])["noise_floor"] for row in rows]
    with pytest.warns(UnmeasuredWarning, match=r"question 21 .* from 0") as said:
        assert np.isnan(metric([*items, wrong]))
    assert len(said) == 1


@pytest.mark.parametrize("metric", METRICS)
def test_hostile_questions_raise_nothing(metric):
    rng = np.random.default_rng(4)
    strange = [
        [],
        None,
        "text",
        3,
        [()],
        [(0, [])],
        [(0, ["a", "b"])],
        [("x", [0.0])],
        [(0, [[0.0], [1.0]])],
        [(0, [0.0, -np.inf])],
        [(0, [1e308, -1e308])],
        [(1.5, [0.0, 1.0])],
    ]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UnmeasuredWarning)
        answers = [metric(items) for items in strange]
        for _ in range(190):
            n, k = rng.integers(0, 4), rng.integers(0, 3)
            values = rng.choice(
                [0.0, -3.0, 800.0, np.nan, np.inf], (n, k), p=[0.4, 0.3, 0.1, 0.1, 0.1]
            )
            answers.append(metric([(int(rng.integers(-1, 3)), list(row)) for row in values]))
    assert all(np.isnan(a) or 0.0 <= a <= 1.0 for a in answers)
    assert 0 < np.isfinite(answers).sum() < len(answers)


@pytest.mark.filterwarnings("ignore")  # the harness's own
def test_lm_evaluation_harness_takes_them(tmp_path, monkeypatch):
    lm_eval = pytest.importorskip("lm_eval")
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    from lm_eval.api.model import LM
    from lm_eval.api.task import ConfigurableTask

    rows = [row | {"choices": list("abcd"[: len(row["scores"])])} for row in questions(120)]
    scores = {row["id"]: row["scores"] for row in rows}
    path = tmp_path / "q.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))

    class Model(LM):
        def loglikelihood(self, requests):
            asked = [request.args for request in requests]
            return [(scores[q]["abcd".index(option.strip())], False) for q, option in asked]

        def loglikelihood_rolling(self, requests): ...

        def generate_until(self, requests): ...

    def process_results(doc, results):
        return evals.calibration_items([result[0] for result in results], doc["answer"])

    metrics = [{"metric": f.__name__, "aggregation": f, "higher_is_better": False} for f in METRICS]
    config = {
        "task": "made",
        "test_split": "test",
        "output_type": "multiple_choice",
        "doc_to_text": "{{id}}",
        "doc_to_choice": "choices",
        "doc_to_target": "answer",
        "dataset_path": "json",
        "dataset_kwargs": {"data_files": {"test": str(path)}, "cache_dir": str(tmp_path)},
        "process_results": process_results,
        "metric_list": metrics,
    }
    task = ConfigurableTask(config=config)
    results = lm_eval.simple_evaluate(model=Model(), tasks=[task], bootstrap_iters=0)["results"]
    items = [(row["answer"], row["scores"]) for row in rows]
    for metric in METRICS:
        assert results["made"][f"{metric.__name__},none"] == pytest.approx(metric(items))


@pytest.fixture
def judged(tmp_path):
    """Return a function that evaluates 160 stated confidences in Inspect, four a topic.

    ``of(silent=row, **options)`` returns the metrics of the scorer by name; the answer of row
    ``silent`` states no confidence. The rows are attributes.
    """
    pytest.importorskip("inspect_ai")
    from inspect_ai import Task
    from inspect_ai import eval as evaluate
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.scorer import Score, scorer
    from inspect_ai.solver import solver

    rng = np.random.default_rng(1)
    sure = rng.uniform(0.3, 1.0, 160)
    right = rng.random(160) < sure**2
    topic = np.arange(160) // 4

    @solver
    def silent_solver():
        async def solve(state, generate):
            return state

        return solve

    def of(silent=None, **options):
        @scorer(metrics=[evals.inspect_calibration(cluster="topic")])
        def judge():
            async def score(state, target):
                i = state.metadata["row"]
                stated = {} if i == silent else {"confidence": sure[i]}
                return Score(value="C" if right[i] else "I", metadata=stated)

            return score

        rows = [{"row": i, "topic": int(topic[i])} for i in range(160)]
        samples = [Sample(input="q", metadata=row) for row in rows]
        task = Task(dataset=MemoryDataset(samples), solver=silent_solver(), scorer=judge())
        (log,) = evaluate(
            task, model="mockllm/model", display="none", log_dir=str(tmp_path), **options
        )
        assert log.status == "success", log.error
        return {name: metric.value for name, metric in log.results.scores[0].metrics.items()}

    of.sure, of.right, of.topic = sure, right, topic
    yield of
    gc.collect()  # streams that Inspect leaves open warn here


@pytest.mark.filterwarnings("ignore")  # the harness's own
def test_inspect_takes_the_metric(judged):
    test = ct.calibration_test(judged.sure, judged.right, clusters=judged.topic)
    found = judged()
    assert found["calibration_error"] == pytest.approx(test.estimate)
    assert found["noise_floor"] == pytest.approx(test.null_mean, rel=0.05)
    assert found["calibration_pvalue"] < 0.01


@pytest.mark.filterwarnings("ignore")  # the harness's own
def test_a_sample_without_confidence_makes_the_metrics_of_inspect_nan(judged):
    with pytest.warns(UnmeasuredWarning, match="sample 8 has no 'confidence'"):
        found = judged(silent=7)
    assert np.isnan([*found.values()]).all()


@pytest.mark.filterwarnings("ignore")  # the harness's own
def test_epochs_of_inspect_are_all_measured(judged):
    found = judged(epochs=3)  # which the default reducer averages
    sure, right, topic = (np.tile(x, 3) for x in (judged.sure, judged.right, judged.topic))
    test = ct.calibration_test(sure, right, clusters=topic)
    assert found["calibration_error"] == pytest.approx(test.estimate)
    assert found["calibration_pvalue"] < 0.01


def scored(values, confidences, ids=None, **facts):
    """Return scores as Inspect hands them to a metric."""
    from inspect_ai.scorer import SampleScore, Score

    ids = range(len(values)) if ids is None else ids
    return [
        SampleScore(score=Score(value=v, metadata={"confidence": c}), sample_id=i, **facts)
        for v, c, i in zip(values, confidences, ids, strict=True)
    ]


def test_epochs_are_outcomes_of_one_sample_that_may_depend():
    pytest.importorskip("inspect_ai")
    rng = np.random.default_rng(2)
    sure, ids = np.repeat(rng.uniform(0.3, 1.0, 120), 3), np.repeat(np.arange(120), 3)
    right = rng.random(360) < sure
    found = evals.inspect_calibration()(scored(np.where(right, "C", "I").tolist(), sure, ids))
    test = ct.calibration_test(sure, right, clusters=ids)
    assert found["calibration_error"] == test.estimate
    assert found["calibration_pvalue"] == pytest.approx(test.pvalue, abs=0.03)  # simulated
    assert ct.calibration_test(sure, right).null_mean != test.null_mean


@pytest.mark.slow
def test_epochs_of_a_calibrated_model_are_not_rejected_more_often_than_promised():
    """All epochs of a sample alike, the hardest case: 200 evaluations of 100 samples."""
    pytest.importorskip("inspect_ai")
    rng, rejected = np.random.default_rng(8), 0
    for _ in range(200):
        sure = rng.uniform(0.3, 1.0, 100)
        right = np.where(rng.random(100) < sure, "C", "I")
        scores = scored(np.repeat(right, 3).tolist(), np.repeat(sure, 3), np.repeat(range(100), 3))
        rejected += evals.inspect_calibration()(scores)["calibration_pvalue"] <= 0.05
    assert rejected <= 19  # 3 standard deviations above 5 %


def test_hostile_scores_raise_nothing():
    pytest.importorskip("inspect_ai")
    rng, metric, answers = np.random.default_rng(6), evals.inspect_calibration(), []
    values = ["C", "I", 1, 0, 0.5, True, "text", {"a": 1}, [1], float("nan")]
    stated = [0.9, 0.2, 1.0, 0, None, "90%", 1.0000001, -1, float("nan"), [0.5]]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UnmeasuredWarning)
        for i in range(200):
            n, few = rng.integers(0, 5), 2 if i % 4 else 10
            ids = rng.integers(0, 3, n).tolist()
            picked = [values[j] for j in rng.integers(0, few, n)]
            answers.append(
                metric(scored(picked, [stated[j] for j in rng.integers(0, few, n)], ids))
            )
        answers.append(metric(None))
        answers.append(metric([None]))
    pvalues = np.array([answer["calibration_pvalue"] for answer in answers])
    assert ((pvalues > 0.0) & (pvalues <= 1.0) | np.isnan(pvalues)).all()
    assert 0 < np.isfinite(pvalues).sum() < pvalues.size


def test_an_inspect_that_reduces_epochs_is_refused(monkeypatch):
    scorer = pytest.importorskip("inspect_ai.scorer")
    monkeypatch.setattr(scorer, "metric", lambda name=None: None)
    with pytest.raises(ImportError, match="pip install -U inspect_ai"):
        evals.inspect_calibration()


def test_without_inspect_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "inspect_ai.scorer", None)
    with pytest.raises(ImportError, match=r"caltest\[inspect\]"):
        evals.inspect_calibration()
