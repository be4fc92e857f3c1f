"""Tests of arrays ask where the values say that they are meant otherwise, as those of files do."""

import sys

import numpy as np
import polars as pl
import pytest
from scipy.special import logit

import caltest as ct
from caltest.data import doubts
from caltest.errors import DoubtfulInputError, DoubtfulInputWarning


@pytest.fixture
def p():
    return np.random.default_rng(0).beta(1.2, 1.8, 400)


@pytest.fixture
def y(p):
    return (np.random.default_rng(1).random(400) < p).astype(int)


VERBS = {
    "calibration_test": ct.calibration_test,
    "audit": ct.audit,
    "confidence_interval": ct.confidence_interval,
    "joint_test": lambda p, y, **facts: ct.joint_test(p, y, pairs=[(ct.ECE(), None)], **facts),
    "reliability_curve": ct.reliability_curve,
    "cox_recalibration": ct.cox_recalibration,
    "compare": lambda p, y, **facts: ct.compare(p, np.full(400, 0.4), y, **facts),
    "gate": lambda p, y, **facts: ct.gate(p, y, tolerance=0.1, **facts),
    "Predictions.of": ct.Predictions.of,
}


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_asks_about_probabilities_of_the_other_outcome(verb, p, y):
    with pytest.raises(
        DoubtfulInputError, match=r"Pass 1 - probs if .* or 1 - labels if"
    ) as caught:
        VERBS[verb](1.0 - p, y)
    assert [dict(r.options) for r in caught.value.readings] == [
        {"probs": "1 - probs"}, {"label": "1 - labels"},
    ]  # fmt: skip
    VERBS[verb](p, y)


@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_goes_on_with_values_that_are_meant_as_they_are(verb, p, y):
    found = VERBS[verb](1.0 - p, y, as_is=True)
    assert "events are rarer where probs are higher" in str(found) + str(vars(found))


def test_an_audit_begins_with_what_puts_it_in_doubt(p, y):
    audit = ct.audit(1.0 - p, y, as_is=True, n_resamples=99)
    assert audit.summary[0].startswith("This is in doubt: read as it is, although events are rarer")


@pytest.mark.parametrize(
    ("turned", "facts", "ways"),
    [
        (lambda p: np.column_stack([p, 1.0 - p]), {}, "probs[:, ::-1] if the columns of probs"),
        (lambda p: logit(1.0 - p), {"from_logits": True}, "0 - (probs) if probs hold"),
        (lambda p: (1.0 - p).tolist(), {}, "1 - probs if probs hold"),
    ],
)
def test_a_reading_says_what_to_pass_in_the_place_of_the_array(p, y, turned, facts, ways):
    with pytest.raises(DoubtfulInputError) as caught:
        ct.calibration_test(turned(p), y, **facts)
    assert f"Pass {ways}" in str(caught.value)


def test_readings_of_labels_of_text_name_the_other_word(p, y):
    words = np.array(["no", "yes"])[y]
    with pytest.raises(DoubtfulInputError, match="or pos_label='no' if labels mark"):
        ct.calibration_test(1.0 - p, words, pos_label="yes")
    assert ct.calibration_test(1.0 - p, words, pos_label="no").pvalue > 0.01


def test_predicted_classes_in_the_place_of_outcomes_are_asked_about(p):
    with (
        pytest.warns(DoubtfulInputWarning, match="may be predicted classes"),
        pytest.raises(DoubtfulInputError, match="Pass the outcomes that were observed"),
    ):
        ct.calibration_test(p, p > 0.5)


def test_swapped_codes_of_censoring_are_asked_about():
    rng = np.random.default_rng(2)
    p = rng.beta(1.2, 2.2, 400)
    event, lost = rng.exponential(size=400) / -np.log1p(-p), rng.uniform(0.2, 1.5, 400)
    time, seen = np.minimum(event, lost), event <= lost
    with pytest.raises(DoubtfulInputError, match="Pass 1 - event"):
        ct.calibration_test(p, ct.Followup(time, ~seen, horizon=1.0))
    assert ct.calibration_test(p, ct.Followup(time, seen, horizon=1.0)).pvalue > 0.01


def test_cumulative_probabilities_are_refused_with_their_differences():
    rng = np.random.default_rng(3)
    q = rng.dirichlet(np.ones(4), 100)
    with pytest.raises(ct.InvalidPredictionsError, match=r"Pass np\.diff\(probs, axis=1"):
        ct.calibration_test(q.cumsum(axis=1), rng.integers(0, 4, 100))


def test_percents_are_refused_with_the_division(p, y):
    with pytest.raises(ct.InvalidPredictionsError, match="percents, pass probs / 100") as caught:
        ct.calibration_test(100.0 * p, y)
    assert caught.value.readings[0].options == {"probs": "probs / 100"}


def test_predictions_are_asked_about_once(p, y):
    data = ct.Predictions.of(1.0 - p, y, as_is=True)
    assert ct.calibration_test(data).notes[0].startswith("read as it is, although")
    with pytest.raises(DoubtfulInputError):
        ct.calibration_test(ct.Predictions.of(p, y), 1 - y)


def test_a_statistic_and_a_monitor_take_arrays_as_they_are(p, y):
    assert ct.ECE()(1.0 - p, y) > 0.2
    assert ct.Monitor().update(1.0 - p, y).n == 400


def test_one_model_of_several_is_named(p, y):
    with pytest.raises(DoubtfulInputError, match=r"^model B: events are rarer"):
        ct.compare(p, 1.0 - p, y)


def test_words_of_outcomes_are_refused_with_the_comparison(p, y):
    with pytest.raises(ct.InvalidPredictionsError, match="labels == 'yes'"):
        ct.calibration_test(p, np.array(["no", "yes"])[y])
    with pytest.raises(ct.InvalidPredictionsError, match="labels == 'alive'"):
        ct.calibration_test(p, ["alive"] * 400)


def test_plain_arrays_enter_one_function_of_the_guards(p, y):
    entered = []

    def seen(frame, event, _):
        if event == "call" and frame.f_code.co_filename == doubts.__file__:
            entered.append(frame.f_code.co_qualname)

    sys.setprofile(seen)
    try:
        ct.calibration_test(p, y)
    finally:
        sys.setprofile(None)
    assert entered == ["doubts_of_arrays"]


VERBS_OF_ROWS = (
    *(ct.audit, ct.report, ct.gate, ct.calibration_test, ct.confidence_interval),
    ct.segment_search,
)


@pytest.mark.parametrize("verb", VERBS_OF_ROWS, ids=lambda verb: verb.__name__)
def test_columns_named_beside_a_table_are_refused_with_the_reading_that_names_them(verb):
    table = pl.DataFrame({"risk": [0.2, 0.7], "died": [0, 1]})
    call = rf"{verb.__name__}\(read_predictions\(table, probs='risk', label='died'\)\)"
    for asked in (
        lambda: verb(table, probs="risk", label="died"),
        lambda: verb(table, probs="risk", labels="died"),
        *[lambda: verb(table, "risk", "died")] * (verb in (ct.audit, ct.report)),
    ):
        with pytest.raises(TypeError, match=call):
            asked()


def test_unpaired_models_with_one_order_of_outcomes_are_asked_about():
    rng = np.random.default_rng(5)
    p = rng.uniform(0.05, 0.95, 200)
    y, other = ((rng.random(200) < p).astype(int) for _ in range(2))
    first, second = ct.Predictions.of(p, y), ct.Predictions.of(p**1.5, y)
    asked = {
        "compare": lambda **o: ct.compare(first, second, paired=False, n_resamples=99, **o),
        "arrays": lambda **o: ct.compare(p, p**1.5, y, labels_b=y, n_resamples=99, **o),
        "gate": lambda **o: ct.gate(
            first, against=second, paired=False, margin=0.1, n_resamples=99, **o
        ),
    }
    for call in asked.values():
        with pytest.raises(DoubtfulInputError, match="same outcomes in the same order"):
            call()
        call(as_is=True)
    ct.compare(first, ct.Predictions.of(p**1.5, other), paired=False, n_resamples=99)
