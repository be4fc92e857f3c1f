"""Logs of lm-evaluation-harness, Inspect and HELM: their columns, and what is refused."""

import json
import time

import numpy as np
import pytest
from files_of_tests import (
    LOG_OF_INSPECT as INSPECTED,
)
from files_of_tests import (
    SAMPLES,
    helm_instance,
    inspect_log,
    inspect_sample,
    lm_eval,
    zipped,
    zst_members,
)

import caltest as ct
from caltest.errors import InvalidPredictionsError
from caltest.read.files import read_predictions


def written(path, content):
    path.write_text(content if isinstance(content, str) else json.dumps(content))
    return path


def refused(path, message, **options):
    with pytest.raises(InvalidPredictionsError, match=message) as caught:
        read_predictions(path, **options)
    return caught.value.readings


def softmax(x):
    return np.exp(x) / np.exp(x).sum()


# --- lm-evaluation-harness ------------------------------------------------------------------------


TASK = "samples_my_task_2025-01-31T12-00-00.123456.jsonl"


def lines(records):
    return "\n".join(map(json.dumps, records))


def test_lm_eval_is_the_softmax_of_the_options(tmp_path):
    path = written(tmp_path / TASK, lines(SAMPLES))
    for found in (read_predictions(path), read_predictions(path, format="lm-eval", by="task")):
        np.testing.assert_allclose(found.probs[0], [*softmax(np.array([-1.0, -2.0])), 0.0])
        np.testing.assert_allclose(found.probs[1], softmax(np.array([-3.0, -1.5, -2.5])))
        np.testing.assert_array_equal(found.labels, [0, 2, 1])
        assert found.n_clusters is None
        assert found.ids.tolist() == [f"{i:064x}" for i in range(3)]
        assert "softmax of the options' log-likelihoods, not length-normalised" in found.notes
        assert "2 rows have fewer options: absent ones have probability 0" in found.notes
    assert found.by.tolist() == ["my_task"] * 3
    refused(path, "the log has probabilities", from_logits=True)


def test_lm_eval_per_character_divides_by_the_length_of_the_option(tmp_path):
    path = written(tmp_path / TASK, lines(SAMPLES))
    scaled = read_predictions(path, per_character=True)
    np.testing.assert_allclose(scaled.probs[1], softmax(np.array([-3.0 / 3, -1.5 / 2, -2.5 / 7])))
    assert "each divided by the characters of its option" in scaled.notes[1]


@pytest.mark.parametrize(
    ("sample", "message"),
    [
        (lm_eval([-1.0, -2.0], 0, 3, acc=0.0), "row 4: the target 0 does not fit .* and acc 0.0"),
        (lm_eval([-1.0, -2.0], 7, 3), "row 4: the target 7 does not fit its 2 options"),
        (lm_eval([-1.0, -2.0], 0, 3, filtered_resps=["text"]), "row 4 does not hold log-like"),
        (lm_eval([-1.0, -2.0], "maybe", 3), "not a readable log of lm-eval"),
        (lm_eval([-1.0, -2.0], 0, 3, acc_mutual_info=1.0), "acc_mutual_info"),
        (lm_eval([-1.0, -2.0], 0, 2), "not told apart by doc_hash and doc_id"),
    ],
)
def test_lm_eval_that_is_refused(tmp_path, sample, message):
    refused(written(tmp_path / TASK, lines([*SAMPLES, sample])), message)


def test_samples_of_two_filters_are_asked_about_and_one_can_be_kept(tmp_path):
    strict = [{**sample, "filter": "strict"} for sample in SAMPLES]
    path = written(tmp_path / TASK, lines([*SAMPLES, *strict]))
    none, other = refused(path, "samples of 2 filters")
    assert read_predictions(path, **none.options).n == 3
    assert read_predictions(path, **other.options).n == 3


def test_the_same_questions_in_two_files_are_clusters(tmp_path):
    again = [{**sample, "doc_id": 9 - i} for i, sample in enumerate(SAMPLES)]
    paths = [
        written(tmp_path / f"samples_t_2025-01-3{k}T00.jsonl", lines(samples))
        for k, samples in enumerate((SAMPLES, again))
    ]
    data = read_predictions(paths)
    assert (data.n, data.n_clusters) == (6, 3)


# --- Inspect --------------------------------------------------------------------------------------


def in_json(samples):
    return {"version": 2, "eval": {"task": "t"}, "samples": samples}


@pytest.mark.parametrize("pack", [zipped, zst_members])
def test_inspect_is_the_stated_confidence_and_whether_the_score_is_c(tmp_path, pack):
    path = tmp_path / "log.eval"
    path.write_bytes(pack(inspect_log(INSPECTED)))
    data = read_predictions(path)
    np.testing.assert_allclose(data.probs[:, 1], [0.9, 0.35, 1.0])
    np.testing.assert_array_equal(data.labels, [1, 0, 1])
    assert "confidence of the scorer judge, as the probability that its score is C" in data.notes
    assert data.n_clusters is None


def test_a_sample_without_a_score_is_named_and_may_be_left_out(tmp_path):
    unscored = {**inspect_sample(3, 0.5, "C"), "scores": None}
    path = written(tmp_path / "log.json", in_json([*INSPECTED, unscored]))
    (reading,) = refused(path, "correct has no value in row 4")
    assert read_predictions(path, **reading.options).n == 3


def test_confidences_in_percent_are_refused_with_the_division(tmp_path):
    samples = [inspect_sample(i, c, "C") for i, c in enumerate((90, 35, 100))]
    path = written(tmp_path / "log.json", in_json(samples))
    (reading,) = refused(path, "confidence is 90 in row 1")
    np.testing.assert_allclose(
        read_predictions(path, **reading.options).probs[:, 1], [0.9, 0.35, 1]
    )


def test_a_fraction_among_percents_has_two_readings(tmp_path):
    samples = [inspect_sample(i, c, "C") for i, c in enumerate((90, 0.35, 100))]
    readings = refused(written(tmp_path / "log.json", in_json(samples)), "0.35 in row 2")
    assert len(readings) == 2


def epochs(tmp_path, *rows):
    """A log of two samples; rows are (sample, confidence, score, epoch)."""
    samples = [inspect_sample(i, c, score, epoch=epoch) for i, c, score, epoch in rows]
    return written(tmp_path / "log.json", in_json(samples))


def test_epochs_with_one_confidence_are_votes(tmp_path):
    rows = [(0, 0.7, "C", 1), (0, 0.7, "I", 2), (1, 0.4, "I", 1), (1, 0.4, "I", 2)]
    data = read_predictions(epochs(tmp_path, *rows))
    assert data.items.tolist() == [0, 1, 0, 1]
    assert "4 rows of 2 samples, whose rows are votes on one confidence each" in data.notes
    assert ct.IndividualError()(data) == pytest.approx(
        ct.IndividualError()(ct.Predictions.of_votes([0.7, 0.4], [[1, 1], [2, 0]]))
    )
    asked = read_predictions(tmp_path / "log.json", clusters="sample")
    assert asked.items is None
    assert asked.n_clusters == 2


def test_epochs_whose_answers_never_differ_are_copies_in_clusters(tmp_path):
    rows = [(0, 0.7, "C", 1), (0, 0.7, "C", 2), (1, 0.4, "I", 1), (1, 0.4, "I", 2)]
    data = read_predictions(epochs(tmp_path, *rows))
    assert data.items is None
    assert data.n_clusters == 2
    assert any("answers to a sample are alike" in note for note in data.notes)


def test_epochs_with_other_confidences_are_a_cluster(tmp_path):
    samples = [*INSPECTED, inspect_sample(0, 0.5, "I", epoch=2)]
    path = written(tmp_path / "log.json", in_json(samples))
    data = read_predictions(path)
    assert (data.n, data.n_clusters, data.items) == (4, 3, None)
    assert data.clusters[0] == data.clusters[3]
    assert data.ids.tolist() == ["q0 1", "q1 1", "q2 1", "q0 2"]
    assert any("confidence differs between the rows of 1 sample" in n for n in data.notes)
    one = read_predictions(path, where="epoch = 1")
    assert (one.n, one.n_clusters) == (3, None)
    named = read_predictions(path, clusters="id")
    assert named.n_clusters is None


def test_sums_of_a_log_with_epochs_are_refused_with_the_rows_to_keep(tmp_path):
    samples = [*INSPECTED, inspect_sample(0, 0.5, "I", epoch=2)]
    path = written(tmp_path / "log.json", in_json(samples))
    with pytest.raises(InvalidPredictionsError, match="samples have several rows") as caught:
        ct.scan(path)
    (reading,) = caught.value.readings
    assert ct.scan(path, **reading.options).n == 3


def test_two_scorers_with_confidences_are_asked_about(tmp_path):
    second = {"value": "I", "metadata": {"confidence": 0.2}}
    samples = [inspect_sample(i, 0.8, "C", strict=second) for i in range(3)]
    path = written(tmp_path / "log.json", in_json(samples))
    judge, strict = refused(path, "the scorers judge and strict keep a confidence each")
    np.testing.assert_allclose(read_predictions(path, **judge.options).probs[:, 1], 0.8)
    data = read_predictions(path, **strict.options)
    np.testing.assert_allclose(data.probs[:, 1], 0.2)
    assert not data.labels.any()


def test_no_answer_counts_as_not_right_and_other_scores_are_refused(tmp_path):
    path = written(tmp_path / "log.json", in_json([*INSPECTED, inspect_sample(3, 0.1, "N")]))
    data = read_predictions(path)
    assert data.labels.tolist() == [1, 0, 1, 0]
    assert "1 row without an answer (N) count as not right" in data.notes
    part = written(path, in_json([inspect_sample(0, 0.5, "P")]))
    refused(part, "row 1: the score 'P' is neither C or 1 nor I or 0")


def test_inspect_logs_without_confidences_and_damaged_ones_are_refused(tmp_path):
    sample = {**inspect_sample(0, 0.5, "C"), "scores": {"judge": {"value": "C"}}}
    refused(written(tmp_path / "log.json", in_json([sample])), "0 scorers keep a confidence")
    refused(written(tmp_path / "f.eval", {"a": 1}), "not a readable log of inspect")


# --- HELM -----------------------------------------------------------------------------------------


HELM = [helm_instance(0, 0.75, 1.0), helm_instance(1, 0.5, 0.0), helm_instance(2, 1.0, 1.0)]


def test_helm_is_the_largest_probability_and_exact_match(tmp_path):
    path = tmp_path / "per_instance_stats.json"
    data = read_predictions(written(path, [*HELM, helm_instance(0, 0.5, 0.0, "typos")]))
    np.testing.assert_allclose(data.probs[:, 1], [0.75, 0.5, 1.0])
    np.testing.assert_array_equal(data.labels, [1, 0, 1])
    assert "max_prob as the probability of an exact match" in data.notes
    assert "left out 1 row with perturbed input" in data.notes


def test_trials_of_an_instance_are_a_cluster(tmp_path):
    again = [helm_instance(i, 0.6, i % 2, trial=1) for i in range(3)]
    data = read_predictions(written(tmp_path / "per_instance_stats.json", [*HELM, *again]))
    assert (data.n, data.n_clusters) == (6, 3)


def test_a_share_of_exact_matches_is_no_outcome(tmp_path):
    path = written(tmp_path / "f.json", [*HELM, helm_instance(3, 0.5, 0.5)])
    refused(path, "correct holds fractions")


def test_helm_files_that_are_refused(tmp_path):
    path = tmp_path / "per_instance_stats.json"
    silent = [helm_instance(i, 1.0, i % 2, logprob=0.0) for i in range(4)]
    refused(written(path, silent), "all log-probabilities are 0: the model gave none")
    bare = json.loads(json.dumps(HELM))
    bare[0]["stats"].pop(0)
    refused(written(path, bare), "not all instances have max_prob and exact_match")
    state = written(tmp_path / "scenario_state.json", {"request_states": []})
    refused(state, "read per_instance_stats.json")
    refused(written(path, HELM), "samples of lm-evaluation-harness", per_character=True)


def test_the_task_in_the_name_of_a_file_is_found_in_linear_time(tmp_path):
    name = "samples_" + "_2025-" * 30 + ".jsonl"
    start = time.process_time()
    data = read_predictions(written(tmp_path / name, lines(SAMPLES)), by="task")
    assert data.by[0] == "_2025-" * 30
    assert time.process_time() - start < 5.0
