"""Metrics for harnesses of language models: by hand, and within them where they are installed."""

import gc
import json

import numpy as np
import pytest

import caltest as ct
from caltest import evals

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
    for wrong in ((4, [0.0, 1.0]), (0, [np.nan, 1.0]), (-1, [0.0, 1.0])):
        with pytest.raises(ct.InvalidPredictionsError, match=r"question 301 .* from 0"):
            evals.calibration_error([*items, wrong])


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
        **{"task": "made", "test_split": "test", "output_type": "multiple_choice"},
        **{"doc_to_text": "{{id}}", "doc_to_choice": "choices", "doc_to_target": "answer"},
        "dataset_kwargs": {"data_files": {"test": str(path)}, "cache_dir": str(tmp_path)},
        **{"dataset_path": "json", "process_results": process_results, "metric_list": metrics},
    }
    task = ConfigurableTask(config=config)
    results = lm_eval.simple_evaluate(model=Model(), tasks=[task], bootstrap_iters=0)["results"]
    items = [(row["answer"], row["scores"]) for row in rows]
    for metric in METRICS:
        assert results["made"][f"{metric.__name__},none"] == pytest.approx(metric(items))


@pytest.mark.filterwarnings("ignore")  # the harness's own
def test_inspect_takes_the_metric(tmp_path):
    pytest.importorskip("inspect_ai")
    from inspect_ai import Task
    from inspect_ai import eval as evaluate
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.scorer import SampleScore, Score, scorer
    from inspect_ai.solver import solver

    rng = np.random.default_rng(1)
    sure = rng.uniform(0.3, 1.0, 160)
    right = rng.random(160) < sure**2
    topic = np.arange(160) // 4

    @solver
    def silent():
        async def solve(state, generate):
            return state

        return solve

    def task(**facts):
        @scorer(metrics=[evals.inspect_calibration(cluster="topic")])
        def judged():
            async def score(state, target):
                i = state.metadata["row"]
                stated = {"confidence": sure[i]} if i != facts.get("silent") else {}
                return Score(value="C" if right[i] else "I", metadata=stated)

            return score

        samples = [
            Sample(input="q", metadata={"row": i, "topic": int(topic[i])}) for i in range(160)
        ]
        return Task(dataset=MemoryDataset(samples), solver=silent(), scorer=judged())

    options = {"model": "mockllm/model", "display": "none", "log_dir": str(tmp_path)}
    (log,) = evaluate(task(), **options)
    assert log.status == "success", log.error
    test = ct.calibration_test(sure, right, clusters=topic)
    values = {name: value.value for name, value in log.results.scores[0].metrics.items()}
    assert values["calibration_error"] == pytest.approx(test.estimate)
    assert values["noise_floor"] == pytest.approx(test.null_mean, rel=0.05)
    assert values["calibration_pvalue"] < 0.01
    score = Score(value="C", metadata={"confidence": 0.9})
    twice = [SampleScore(score=score, sample_metadata={"topic": 0})] * 2
    assert np.isnan(list(evals.inspect_calibration(cluster="topic")(twice).values())).all()
    (log,) = evaluate(task(silent=7), **options)
    assert log.status == "error"
    assert "sample 8 has no 'confidence'" in log.error.message
    gc.collect()  # streams that Inspect leaves open warn here


def test_without_inspect_the_error_names_the_extra(monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "inspect_ai.scorer", None)
    with pytest.raises(ImportError, match=r"caltest\[inspect\]"):
        evals.inspect_calibration()
