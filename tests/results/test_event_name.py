"""The user's names of outcome and event reach every result as a field, and what people read."""

import numpy as np
import polars as pl
import pytest

import caltest as ct
from caltest.reports.report import axis_titles
from caltest.results import CalibrationTestResult

RUN = {"n_resamples": 99, "rng": 1}


@pytest.fixture(scope="module")
def patients():
    rng = np.random.default_rng(3)
    p = rng.uniform(0.05, 0.6, 400).round(4)
    words = np.where(rng.random(400) < 0.6 * p, "yes", "no")
    return pl.DataFrame({"risk": p, "died": (words == "yes").astype(int), "word": words})


@pytest.fixture(scope="module")
def died(patients):
    return ct.read_predictions(patients, probs="risk", label="died")


def test_a_table_names_the_event_after_the_column_of_outcomes(died):
    assert (died.outcome, died.event_name, died.class_name(1)) == ("died", "died", "died")


def test_a_series_names_the_event(patients):
    assert ct.Predictions.of(patients["risk"], patients["died"]).event_name == "died"


@pytest.mark.parametrize("name", ["label", "Y", "target"])
def test_a_column_with_a_general_name_names_no_event(patients, name):
    data = ct.Predictions.of(patients["risk"], patients["died"].rename(name))
    assert (data.outcome, data.event_name, data.class_name(1)) == (name, "", "1")


@pytest.mark.parametrize(
    ("classes", "outcome", "event"),
    [
        (("alive", "dead"), "status", "dead"),
        (("no", "yes"), "died", "died"),
        (("no", "yes"), "label", ""),
    ],
)
def test_the_name_of_class_1_is_the_event_unless_it_only_says_yes(classes, outcome, event):
    data = ct.Predictions(np.full((2, 2), 0.5), np.array([0, 1]), classes, outcome=outcome)
    assert data.event_name == event


def test_an_event_is_a_lens_by_its_name(died):
    by_name = ct.calibration_test(died, lens=ct.OneVsRest("died"))
    assert by_name.estimate == ct.calibration_test(died).estimate


def test_induced_predictions_have_no_event_by_name(died):
    assert ct.TopK(1)(died).event_name == ct.OneVsRest(0)(died).event_name == ""


def test_results_carry_the_event_that_their_lens_shows(died):
    of = {lens: ct.calibration_test(died, lens=lens).event_name for lens in (None, ct.TopK(1))}
    assert of == {None: "died", ct.TopK(1): ""}
    assert ct.confidence_interval(died, rng=1, n_resamples=99).event_name == "died"
    older = {"age": np.arange(400) % 50}
    assert ct.segment_search(died, features=older, **RUN).event_name == "died"


def test_a_class_of_several_is_named_by_a_lens_of_that_class():
    data = ct.Predictions.of([[0.2, 0.3, 0.5]] * 60, ["a", "b", "c"] * 20, ["a", "b", "c"])
    assert ct.calibration_test(data, lens=ct.OneVsRest(2)).event_name == "c"
    assert ct.calibration_test(data).event_name == ""


def test_a_tally_keeps_the_event_in_sums_and_json(patients, died):
    tally = ct.Tally.of(died)
    assert ct.Tally.from_json((tally + tally).to_json()).event_name == "died"
    other = ct.Tally.of(patients["risk"], patients["died"].rename("fell"))
    assert (tally + other).event_name == ""


def test_an_audit_asks_and_answers_about_the_event(died):
    report = ct.audit(died, **RUN)
    assert (report.event_name, report.rows[0].question) == ("died", "is P(died) right?")
    assert any(sentence.startswith("P(died): predicts") for sentence in report.summary)
    assert "Class 1" not in str(report)


def test_json_has_the_event(died):
    test = ct.calibration_test(died)
    assert CalibrationTestResult.from_json(test.to_json()).event_name == "died"
    assert '"event_name": "died"' in test.to_json()


def test_a_test_prints_the_event(died):
    assert "event        died" in str(ct.calibration_test(died))


def test_axes_of_pictures_name_the_event(died):
    pytest.importorskip("matplotlib")
    picture = ct.reliability_curve(died).plot(style="classical")
    labels = picture.ax.get_xlabel(), picture.ax.get_ylabel()
    assert labels == ("Predicted P(died)", "Observed frequency of died")


def test_the_axes_of_a_report_name_the_event(died):
    from caltest.inference.reliability import View
    from caltest.reports.first_screen import ScreenTerms

    titles = axis_titles(View.through(None, died), ScreenTerms())
    assert titles == ("Predicted P(died)", "Observed frequency of died")
