"""Logs of harnesses that evaluate language models: lm-evaluation-harness, Inspect, HELM."""

import json

import numpy as np
import pytest
from files_of_tests import LOG_OF_INSPECT as INSPECTED
from files_of_tests import (
    SAMPLES,
    check,
    helm_instance,
    inspect_log,
    inspect_sample,
    lm_eval,
    refused,
    written,
    zipped,
    zst_members,
)

from caltest.read.files import read_predictions

TASK = "samples_my_task_2025-01-31T12-00-00.123456.jsonl"


def softmax(x):
    return np.exp(x) / np.exp(x).sum()


def test_lm_eval(tmp_path):
    path = written(tmp_path / TASK, "\n".join(map(json.dumps, SAMPLES)))
    for found in (read_predictions(path), read_predictions(path, format="lm-eval", by="task")):
        np.testing.assert_allclose(found.probs[0], [*softmax(np.array([-1.0, -2.0])), 0.0])
        np.testing.assert_allclose(found.probs[1], softmax(np.array([-3.0, -1.5, -2.5])))
        np.testing.assert_array_equal(found.labels, [0, 2, 1])
        assert found.ids.tolist() == [f"{i:064x}" for i in range(3)]
        assert "softmax of the options' log-likelihoods, not length-normalised" in found.notes
        assert "2 rows have fewer options: absent ones have probability 0" in found.notes
    assert found.by.tolist() == ["my_task"] * 3
    scaled = read_predictions(path, per_character=True)
    np.testing.assert_allclose(scaled.probs[1], softmax(np.array([-3.0 / 3, -1.5 / 2, -2.5 / 7])))
    assert "each divided by the characters of its option" in scaled.notes[1]
    refused(path, "the log has probabilities", from_logits=True)


@pytest.mark.parametrize(
    ("sample", "message"),
    [
        (lm_eval([-1.0, -2.0], 0, 3, acc=0.0), "row 4: the target 0 does not fit .* and acc 0.0"),
        (lm_eval([-1.0, -2.0], 7, 3), "row 4: the target 7 does not fit its 2 options"),
        (lm_eval([-1.0, -2.0], 0, 3, filtered_resps=["text"]), "row 4 does not hold log-like"),
        (lm_eval([-1.0, -2.0], 0, 3, filter="strict"), "samples of 2 filters"),
        (lm_eval([-1.0, -2.0], "maybe", 3), "not a readable log of lm-eval"),
        (lm_eval([-1.0, -2.0], 0, 3, acc_mutual_info=1.0), "acc_mutual_info"),
        (lm_eval([-1.0, -2.0], 0, 2), "not told apart by doc_hash and doc_id"),
    ],
)
def test_refused_lm_eval(tmp_path, sample, message):
    refused(written(tmp_path / TASK, "\n".join(map(json.dumps, [*SAMPLES, sample]))), message)


@pytest.mark.parametrize("pack", [zipped, zst_members])
def test_inspect(tmp_path, pack):
    path = tmp_path / "log.eval"
    path.write_bytes(pack(inspect_log(INSPECTED)))
    data = read_predictions(path)
    check(data, [[0.1, 0.9], [0.65, 0.35], [0.0, 1.0]], [1, 0, 1])
    assert data.ids.tolist() == ["q0", "q1", "q2"]
    assert "confidence of the scorer judge, in percent" in data.notes[1]
    unscored = {**inspect_sample(3, 50, "C"), "scores": None}
    path.write_bytes(pack(inspect_log([*INSPECTED, unscored])))
    refused(path, "no value in row 4 ")
    assert read_predictions(path, drop_missing=True).n == 3


def test_inspect_epochs_and_json(tmp_path):
    samples = [*INSPECTED, inspect_sample(0, 50, "I", epoch=2)]
    log = {"version": 2, "eval": {"task": "t"}, "samples": samples}
    path = written(tmp_path / "log.json", json.dumps(log))
    data = read_predictions(path)
    assert (data.ids.tolist(), data.n_clusters) == (["q0 1", "q1 1", "q2 1", "q0 2"], 3)
    log["samples"] = [inspect_sample(0, 0.5, "P")]
    refused(written(path, json.dumps(log)), "the score 'P' is neither C or 1 nor I or 0")
    log["samples"] = [{**inspect_sample(0, 0.5, "C"), "scores": {"judge": {"value": "C"}}}]
    refused(written(path, json.dumps(log)), "0 scorers keep a confidence")
    refused(written(tmp_path / "f.eval", json.dumps({"a": 1})), "not a readable log of inspect")


def test_helm(tmp_path):
    path = tmp_path / "per_instance_stats.json"
    entries = [helm_instance(0, 0.75, 1.0), helm_instance(1, 0.5, 0.0), helm_instance(2, 1.0, 0.5)]
    entries.append(helm_instance(0, 0.5, 0.0, "typos"))
    data = read_predictions(written(path, json.dumps(entries)))
    check(data, [[0.25, 0.75], [0.5, 0.5], [0.0, 1.0]], [1, 0, 0])
    assert data.ids.tolist() == ["id0", "id1", "id2"]
    assert data.notes[1:] == (
        "max_prob as the probability of an exact match",
        "left out 1 rows with perturbed input",
    )
    silent = [helm_instance(i, 1.0, i % 2, logprob=0.0) for i in range(4)]
    refused(written(path, json.dumps(silent)), "all log-probabilities are 0: the model gave none")
    entries[0]["stats"].pop(0)
    refused(written(path, json.dumps(entries)), "not all instances have max_prob and exact_match")
    state = written(tmp_path / "scenario_state.json", json.dumps({"request_states": []}))
    refused(state, "read per_instance_stats.json")
    refused(written(path, json.dumps(entries[1:3])), "samples of lm-eval", per_character=True)
