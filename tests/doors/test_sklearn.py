"""caltest in scikit-learn: classes by name, folds that lack one, and scikit-learn's own checks."""

import pickle
import warnings

import numpy as np
import pytest

import caltest as ct
from caltest.errors import (
    DoubtfulInputWarning,
    InvalidPredictionsError,
    StatisticError,
    UnmeasuredWarning,
)

pytest.importorskip("sklearn")
from sklearn.base import clone
from sklearn.datasets import load_wine, make_classification
from sklearn.metrics import make_scorer
from sklearn.model_selection import GridSearchCV, cross_val_score, cross_validate
from sklearn.naive_bayes import GaussianNB
from sklearn.utils.estimator_checks import parametrize_with_checks

from caltest import sklearn as adapter
from caltest.recalibration import VectorScaling
from caltest.sklearn import (
    CalibrationScorer,
    CalibrationTestDisplay,
    RecalibratedClassifier,
    calibration_error,
    calibration_pvalue,
)

X, Y = load_wine(return_X_y=True)
NAMES = np.array(["white", "red", "rosé"])  # not in the order of the alphabet
WINES = NAMES[Y]
SORTED = sorted(NAMES)
TRAINED = GaussianNB().fit(X[::3], WINES[::3])
PROBS, TRUTH = TRAINED.predict_proba(X[1::3]), WINES[1::3]
BINARY = make_classification(300, n_informative=4, random_state=0)
CODES = np.searchsorted(SORTED, TRUTH)


def test_scores_are_those_of_caltest():
    assert calibration_error(TRUTH, PROBS) == ct.ECE()(ct.TopK(1)(ct.Predictions.of(PROBS, CODES)))
    lens = ct.OneVsRest(1)
    options = {"statistic": ct.Kuiper(), "lens": lens, "n_resamples": 99, "rng": 1}
    seen = ct.calibration_test(PROBS, CODES, **options)
    of_red = {"pos_label": SORTED[1], "statistic": ct.Kuiper()}
    assert calibration_error(TRUTH, PROBS, **of_red) == seen.estimate
    assert calibration_pvalue(TRUTH, PROBS, **options) == seen.pvalue


@pytest.mark.parametrize(
    ("y_true", "options"),
    [
        ([0, 1, 1, 0], {}),
        ([-1, 1, 1, -1], {}),
        ([False, True, True, False], {}),
        ([0.0, 1.0, 1.0, 0.0], {}),
        ([[0], [1], [1], [0]], {}),
        (["no", "yes", "yes", "no"], {"pos_label": "yes"}),
        (["no", "yes", "yes", "no"], {"labels": ["no", "yes"]}),
        ([2, 1, 1, 2], {"pos_label": 1}),
        ([2.0, 1.0, 1.0, 2.0], {"pos_label": 1, "labels": [1, 2]}),
    ],
)
def test_the_event_of_one_column(y_true, options):
    p = [0.25, 0.75, 0.5, 0.125]
    expected = ct.ECE()(p, [0, 1, 1, 0])
    assert calibration_error(y_true, p, **options) == expected
    assert calibration_error(y_true, np.array(p)[:, None], None, **options) == expected


def test_folds_that_lack_a_class():
    few = TRUTH != "red"
    with pytest.raises(InvalidPredictionsError, match="3 columns, but there are 2 classes: pass"):
        calibration_error(TRUTH[few], PROBS[few])
    found = calibration_error(TRUTH[few], PROBS[few], labels=TRAINED.classes_)
    assert found == ct.ECE()(ct.TopK(1)(ct.Predictions.of(PROBS[few], CODES[few])))
    p = [0.5, 0.75]
    assert calibration_error(["yes", "yes"], p, pos_label="yes") == ct.ECE()(p, [1, 1])
    assert calibration_error([0, 0], p) == ct.ECE()(p, [0, 0])


@pytest.mark.parametrize(
    ("y_true", "y_prob", "options", "message"),
    [
        (["a", "b"], [0.5, 0.75], {}, "one column.*'a', 'b': pass the class as pos_label"),
        ([1, 2], [0.5, 0.75], {}, "one column.*1, 2: pass the class as pos_label"),
        ([0, 1, 2], [0.5, 0.75, 0.5], {"pos_label": 1}, "one column, the probability of one of"),
        (["a", "b", "c"], [0.5] * 3, {"labels": ["a", "b"]}, "one column"),
        (["a", "c"], [[0.5, 0.5]] * 2, {"labels": ["a", "b"]}, "row 1 is .*'c'.*classes a, b"),
        ([0, 1], [0.5, 1.5], {}, "row 1 is 1.5, outside"),
        ([0.25, 0.5], [0, 1], {}, "Unknown label type"),
        ([0, 1], [0.5], {}, "probs has 1 rows but labels has 2"),
    ],
)
def test_refused(y_true, y_prob, options, message):
    with pytest.raises(ValueError, match=message):
        calibration_error(y_true, y_prob, **options)


@pytest.mark.parametrize("score", [calibration_error, calibration_pvalue])
def test_weights(score):
    y, p, w = [0, 1, 1, 0], [0.25, 0.75, 0.5, 0.125], [1, 1, 2, 1]
    assert score(y, p, sample_weight=[3.5] * 4) == score(y, p)
    weighted = ct.calibration_test(p, y, weights=w)
    expected = {calibration_error: weighted.estimate, calibration_pvalue: weighted.pvalue}
    assert score(y, p, sample_weight=w) == expected[score]
    assert weighted.estimate != ct.ECE()(p, y)
    with pytest.raises(StatisticError, match="does not take weights"):
        score(y, p, w, statistic=ct.EValue())
    with pytest.raises(InvalidPredictionsError, match="one value for each of the 4 rows"):
        score(y, p, sample_weight=[1, 1])


def test_scorers_in_a_search():
    names = np.array(["no", "yes"])[BINARY[1]]
    options = {"response_method": "predict_proba", "greater_is_better": False, "pos_label": "yes"}
    scorer = make_scorer(calibration_error, statistic=ct.BrierScore(), **options)
    options = {"scoring": scorer, "cv": 3, "error_score": "raise"}
    by_name = cross_val_score(GaussianNB(), BINARY[0], names, **options)
    known = cross_val_score(GaussianNB(), *BINARY, scoring="neg_brier_score", cv=3)
    np.testing.assert_allclose(by_name, known)


def test_display_of_an_estimator():
    from matplotlib.figure import Figure

    ax = Figure().add_subplot()
    display = CalibrationTestDisplay.from_estimator(
        TRAINED, X[1::3], TRUTH, pos_label="red", ax=ax, bins=5, simultaneous=True
    )
    expected = ct.reliability_curve(PROBS, CODES, lens=ct.OneVsRest(0), bins=5, simultaneous=True)
    np.testing.assert_array_equal(display.curve.observed, expected.observed)
    np.testing.assert_array_equal(display.curve.low, expected.low)
    assert (display.curve.names, display.ax_, display.figure_) == (("class red",), ax, ax.figure)
    assert CalibrationTestDisplay(display.curve).plot().ax_ is not ax


def test_a_fitted_classifier_is_left_as_it_is():
    model = RecalibratedClassifier(TRAINED, VectorScaling(0.1)).fit(X[1::3], TRUTH)
    expected, new = VectorScaling(0.1).fit(PROBS, CODES), X[2::3]
    np.testing.assert_array_equal(model.predict_proba(new), expected(TRAINED.predict_proba(new)))
    assert (model.predict(new) == WINES[2::3]).mean() > 0.9
    assert (model.estimator_, model.get_params()["method"]) == (TRAINED, VectorScaling(0.1))
    with pytest.raises(ValueError, match="row 0 is 'blue'"):
        model.fit(X[:1], ["blue"])


def test_one_that_is_not_fitted_is_trained():
    """The map is that of the predictions for held-out folds, and all rows train the classifier."""
    from sklearn.model_selection import cross_val_predict

    model = RecalibratedClassifier(GaussianNB(), cv=4).fit(X, WINES)
    held_out = cross_val_predict(GaussianNB(), X, WINES, cv=4, method="predict_proba")
    expected = VectorScaling().fit(held_out, np.searchsorted(SORTED, WINES))
    probs = GaussianNB().fit(X, WINES).predict_proba(X)
    np.testing.assert_array_equal(model.predict_proba(X), expected(probs))
    few = np.r_[0:12, 60:63, 170:172]  # two rows of one class: two folds
    assert RecalibratedClassifier(GaussianNB(var_smoothing=1)).fit(X[few], WINES[few]).cv == 5
    with pytest.raises(ValueError, match="a class of one sample"):
        RecalibratedClassifier(GaussianNB()).fit(X[few[:-1]], WINES[few[:-1]])


@pytest.mark.filterwarnings("ignore")
@parametrize_with_checks([RecalibratedClassifier(GaussianNB())])
def test_checks_of_scikit_learn(estimator, check):
    check(estimator)


def test_recalibrated_classifiers_take_weights_and_groups(monkeypatch):
    x, y = BINARY
    rng = np.random.default_rng(0)
    w, groups = rng.integers(1, 4, y.size), rng.integers(0, 40, y.size)
    prefit = GaussianNB().fit(x, y)
    heavy = RecalibratedClassifier(prefit).fit(x, y, sample_weight=w)
    copied = RecalibratedClassifier(prefit).fit(np.repeat(x, w, axis=0), np.repeat(y, w))
    np.testing.assert_allclose(heavy.predict_proba(x[:9]), copied.predict_proba(x[:9]), atol=1e-6)
    whole = RecalibratedClassifier(GaussianNB()).fit(x, y, sample_weight=w, groups=groups)
    expected = GaussianNB().fit(x, y, sample_weight=w).predict_proba(x)
    np.testing.assert_allclose(whole.estimator_.predict_proba(x), expected)
    held = []
    folds = adapter.cross_val_predict

    def seen(*args, **options):
        held.extend(options["cv"].split(x, y, options["groups"]))
        return folds(*args, **options)

    monkeypatch.setattr(adapter, "cross_val_predict", seen)
    RecalibratedClassifier(GaussianNB()).fit(x, y, groups=groups)
    assert len(held) == 5
    assert all(set(groups[a]).isdisjoint(groups[b]) for a, b in held)


def test_a_score_of_reversed_probabilities_warns_and_is_returned():
    p = np.random.default_rng(0).beta(1.2, 1.8, 400)
    y = (np.random.default_rng(1).random(400) < p).astype(int)
    with pytest.warns(DoubtfulInputWarning, match="events are rarer where probs are higher"):
        assert calibration_error(y, 1.0 - p) == ct.ECE()(1.0 - p, y)


def test_the_scorer_is_minus_the_error_of_the_fitted_model():
    x, y = load_wine(return_X_y=True)
    model = GaussianNB().fit(x, y)
    for lens in (None, ct.OneVsRest(1)):
        expected = calibration_error(y, model.predict_proba(x), lens=lens)
        assert CalibrationScorer(lens=lens)(model, x, y) == -expected


def test_a_search_takes_the_scorer_and_folds_may_lack_a_class():
    x, y = load_wine(return_X_y=True)
    folds = [(np.arange(c, y.size, 2), np.flatnonzero(y != c)) for c in range(2)]
    search = GridSearchCV(
        GaussianNB(), {"var_smoothing": [1e-9, 1e-1]}, cv=folds, scoring=CalibrationScorer()
    )
    found = clone(search).fit(x, y).cv_results_
    for j, (train, rows) in enumerate(folds):
        probs = GaussianNB().fit(x[train], y[train]).predict_proba(x[rows])
        error = calibration_error(y[rows], probs, labels=[0, 1, 2])
        assert found[f"split{j}_test_score"][0] == -error
    assert pickle.loads(pickle.dumps(CalibrationScorer(ct.ECE(5)))) == CalibrationScorer(ct.ECE(5))


class Hostile(GaussianNB):
    """A model of which some predictions are no probabilities."""

    def predict_proba(self, X):
        probs = super().predict_proba(X)
        kind = np.random.default_rng(len(X) + int(1e6 * abs(X[0, 0]))).integers(5)
        if kind == 0:
            return probs * np.nan
        if kind == 1:
            return probs + 7.0
        return probs[:, :1] if kind == 2 else probs


@pytest.mark.slow
def test_a_search_over_hostile_models_goes_on():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2000, 2)), rng.integers(0, 3, 2000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.simplefilter("ignore", UnmeasuredWarning)
        found = cross_validate(
            Hostile(), x, y, cv=200, scoring=CalibrationScorer(), error_score="raise"
        )["test_score"]
    assert 40 < np.isfinite(found).sum() < 160
    assert (found[np.isfinite(found)] <= 0.0).all()


def test_a_model_that_cannot_be_measured_is_nan_and_one_warning():
    x, y = load_wine(return_X_y=True)
    model = GaussianNB().fit(x, y)
    model.predict_proba = lambda rows: np.full((len(rows), 3), np.nan)
    with pytest.warns(UnmeasuredWarning, match="the calibration error is nan: Invalid") as said:
        assert np.isnan(CalibrationScorer()(model, x, y))
    assert len(said) == 1
