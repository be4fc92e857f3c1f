"""Recalibration against slow twins, first-order conditions, scikit-learn, and published numbers."""

import pickle

import numpy as np
import pytest
from scipy.optimize import minimize
from twins import recalibration as ref
from twins.curves import isotonic

import caltest as ct
from caltest.nulls import LabelSampler
from caltest.recalibration import (
    LOG_PROBABILITY_FLOOR,
    BetaCalibration,
    HistogramBinning,
    IsotonicRegression,
    MatrixScaling,
    PlattScaling,
    Temperature,
    TemperatureScaling,
    VectorScaling,
    refuse_fitted_rows,
)

SCALING = [TemperatureScaling(), VectorScaling(), MatrixScaling()]
CURVES = [
    PlattScaling(), BetaCalibration(), IsotonicRegression(), HistogramBinning(),
    HistogramBinning(ct.QuantileBins(10)),
]  # fmt: skip
METHODS = SCALING + CURVES


def overconfident(n, n_classes, seed=0, temperature=0.5):
    """Logits whose labels follow the softmax at another temperature."""
    rng = np.random.default_rng(seed)
    logits = 2.0 * rng.normal(size=(n, n_classes))
    labels = LabelSampler.of(ref.softmax(temperature * logits))(rng.random(n))
    return logits, labels


def log(probs):
    return np.log(np.maximum(probs, LOG_PROBABILITY_FLOOR))


def centred(probs):
    return log(probs) - log(probs).mean(axis=1, keepdims=True)


@pytest.mark.parametrize(("n", "n_classes"), [(50, 2), (300, 3), (400, 20)])
@pytest.mark.parametrize("scale", [0.2, 1.0, 5.0])
def test_temperature_against_bracketing_search(n, n_classes, scale):
    logits, labels = overconfident(n, n_classes)
    fitted = TemperatureScaling(1e-12).fit(scale * logits, labels, from_logits=True)
    expected = ref.temperature(scale * logits, labels)
    assert fitted.map.temperature == pytest.approx(expected, rel=1e-6)
    repaired = ref.softmax(scale * logits / fitted.map.temperature)
    assert fitted.nll_after == pytest.approx(ref.nll(repaired, labels), rel=1e-12)


@pytest.mark.parametrize(
    ("method", "n", "n_classes"),
    [*((VectorScaling(1e-11), 500, k) for k in (2, 3, 10)), (MatrixScaling(1e-9), 800, 4)],
)
def test_scaling_meets_its_conditions(method, n, n_classes):
    # At the optimum frequencies and mean scores are those of the labels; a matrix has all pairs.
    logits, labels = overconfident(n, n_classes)
    probs = ref.softmax(logits)
    gaps = method.fit(probs, labels)(probs) - np.eye(n_classes)[labels]
    np.testing.assert_allclose(gaps.mean(axis=0), 0.0, atol=1e-7)
    scores = gaps.T @ centred(probs) / n
    met = scores if isinstance(method, MatrixScaling) else np.diag(scores)
    np.testing.assert_allclose(met, 0.0, atol=1e-7)


@pytest.mark.parametrize("method", [PlattScaling, BetaCalibration])
def test_smooth_curves_against_simplex_search(method):
    rng = np.random.default_rng(1)
    p = rng.beta(0.8, 0.5, 200)
    event = rng.random(200) < p**2

    def loss(theta):
        a, b, c = (theta[0], *theta) if method is PlattScaling else theta
        q = ref.logistic_curve(a, b, c, p)
        return ref.nll(np.column_stack([1 - q, q]), event.astype(int))

    start = [1.0, 0.0] if method is PlattScaling else [1.0, 1.0, 0.0]
    options = {"xatol": 1e-9, "fatol": 1e-14, "maxfev": 5000}
    found = minimize(loss, start, method="Nelder-Mead", options=options)
    fitted = method(1e-12).fit(p, event)
    (curve,) = fitted.map.curves
    assert [curve.a, curve.b, curve.c][-len(start) :] == pytest.approx(found.x, abs=2e-5)
    expected = ref.logistic_curve(curve.a, curve.b, curve.c, p)
    np.testing.assert_allclose(fitted(p), expected, rtol=1e-10)


def test_beta_curve_stays_increasing():
    # Without bounds the exponent of p would be negative here.
    rng = np.random.default_rng(5)
    p = rng.uniform(0.01, 0.99, 400)
    event = rng.random(400) < np.where(p < 0.5, 0.6 - p, 0.9 * p)
    (curve,) = BetaCalibration().fit(p, event).map.curves
    assert curve.a == 0.0
    assert curve.b > 0.0

    def loss(theta):
        q = ref.logistic_curve(0.0, *theta, p)
        return ref.nll(np.column_stack([1 - q, q]), event.astype(int))

    fit = minimize(loss, [1.0, 0.0], method="Nelder-Mead", options={"xatol": 1e-8, "fatol": 1e-13})
    assert [curve.b, curve.c] == pytest.approx(fit.x, abs=1e-4)


@pytest.mark.parametrize("decimals", [1, 8])
def test_isotonic_against_max_min_formula(decimals):
    rng = np.random.default_rng(2)
    p = rng.random(60).round(decimals)
    event = (rng.random(60) < p**2).astype(int)
    levels, values = np.array(sorted(isotonic(p, event).items())).T
    fitted = IsotonicRegression().fit(p, event)
    np.testing.assert_allclose(fitted(levels), values, atol=1e-14)
    middle = 0.5 * (levels[1:] + levels[:-1])
    np.testing.assert_allclose(fitted(middle), 0.5 * (values[1:] + values[:-1]), atol=1e-12)


@pytest.mark.parametrize("closed", ["right", "left"])
@pytest.mark.parametrize("kind", [ct.UniformBins, ct.QuantileBins])
def test_histogram_bins_are_those_of_the_binning(kind, closed):
    rng = np.random.default_rng(3)
    p = rng.integers(0, 11, 90) / 10.0
    event = rng.random(90) < p
    fitted = HistogramBinning(kind(5, closed=closed)).fit(p, event)(p)
    cells = kind(5, closed=closed)(p)
    expected = (np.bincount(cells, event) / np.maximum(np.bincount(cells), 1))[cells]
    np.testing.assert_allclose(fitted, expected, atol=1e-15)


def test_empty_bins_keep_their_centre():
    fitted = HistogramBinning(ct.UniformBins(4)).fit([0.1, 0.9], [1, 0])
    np.testing.assert_allclose(fitted([0.1, 0.3, 0.6, 0.9]), [1.0, 0.375, 0.625, 0.0], atol=1e-9)


@pytest.mark.parametrize("method", CURVES)
def test_many_classes_are_curves_one_against_the_rest(method):
    logits, labels = overconfident(200, 4)
    probs, new = ref.softmax(logits), ref.softmax(overconfident(50, 4, seed=1)[0])
    alone = [method.fit(probs[:, k], labels == k) for k in range(4)]
    curves = [lambda p, one=one: float(one(np.array([p]))[0]) for one in alone]
    expected = ref.one_vs_rest(curves, new)
    np.testing.assert_allclose(method.fit(probs, labels)(new), expected, atol=1e-6)


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("n_classes", [2, 5])
def test_maps_are_of_distributions_and_of_rows_alone(method, n_classes):
    logits, labels = overconfident(100, n_classes)
    before, order = logits.copy(), np.random.default_rng(4).permutation(100)
    fitted = method.fit(logits, labels, from_logits=True)
    for new in (logits, 50.0 * logits, np.zeros((3, n_classes))):
        probs = fitted(new, from_logits=True)
        assert probs.shape == new.shape
        assert probs.min() >= 0.0
        np.testing.assert_allclose(probs.sum(axis=1), 1.0, atol=1e-12)
    probs = fitted(logits, from_logits=True)
    moved = method.fit(logits[order], labels[order], from_logits=True)
    np.testing.assert_allclose(moved(logits, from_logits=True), probs, atol=1e-7)
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again(logits, from_logits=True), probs)
    np.testing.assert_array_equal(logits, before)
    for n in (1, 2, 7):
        same = np.tile([0.2, 0.3, 0.5], (n, 1))
        assert np.isfinite(method.fit(same, np.full(n, 2))(same)).all()


@pytest.mark.parametrize("temperature", [1e-4, 0.3, 1.7, 1e3, 1e7, 1e17])
def test_temperature_leaves_every_top_class(temperature):
    logits = overconfident(2000, 3)[0]
    close = np.array([[0.3, np.nextafter(0.3, 1.0), 0.2], [0.4, 0.4, 0.2]])
    scores = log(np.vstack([ref.softmax(logits), close / close.sum(axis=1, keepdims=True)]))
    scores = np.vstack([scores, [[-1.0, -1.0 + 1e-16, -3.0]]])
    repaired = Temperature(temperature)(scores)
    np.testing.assert_array_equal(repaired.argmax(axis=1), scores.argmax(axis=1))


@pytest.mark.parametrize("method", METHODS)
def test_logits_and_probabilities_are_the_same_predictions(method):
    logits, labels = overconfident(150, 3)
    shifted = logits + np.random.default_rng(9).normal(0.0, 30.0, (150, 1))
    one = method.fit(ref.softmax(logits), labels)(ref.softmax(logits))
    two = method.fit(shifted, labels, from_logits=True)(logits, from_logits=True)
    np.testing.assert_allclose(one, two, rtol=1e-5, atol=1e-8)


def test_probabilities_of_one_keep_the_logits_of_float64():
    scores = np.array([0.0, 40.0, -40.0])  # as a probability, the second is 1
    fitted = PlattScaling().fit([0.9, 0.1, 0.6, 0.4], [1, 0, 0, 1])
    (curve,) = fitted.map.curves
    q = fitted(scores, from_logits=True)
    assert q[1] == pytest.approx(1.0 / (1.0 + np.exp(-curve.a * 40.0 - curve.c)), rel=1e-12)
    PlattScaling().fit(np.linspace(0.5, 3, 40), np.arange(40) % 9 > 0, from_logits=True)  # no doubt


@pytest.mark.filterwarnings("ignore::caltest.DoubtfulInputWarning")
@pytest.mark.parametrize("method", METHODS)
def test_separable_data_have_a_finite_map(method):
    probs = np.random.default_rng(0).dirichlet(np.ones(3), 50)
    fitted = method.fit(probs, probs.argmax(axis=1))
    assert fitted.nll_after <= fitted.nll_before
    assert np.isfinite(fitted(probs)).all()
    if method in SCALING:
        assert fitted.nll_after < 0.02


@pytest.mark.parametrize("method", METHODS)
def test_a_class_that_does_not_occur(method):
    logits, labels = overconfident(200, 4)
    kept = labels != 2
    fitted = method.fit(logits[kept], labels[kept], from_logits=True)
    assert np.isfinite(fitted.nll_after)
    repaired = fitted(logits, from_logits=True)
    np.testing.assert_allclose(repaired.sum(axis=1), 1.0, atol=1e-12)
    if isinstance(method, (IsotonicRegression, HistogramBinning)):
        assert np.median(repaired[:, 2]) == 0.0
    elif method != TemperatureScaling():
        assert 0.0 < repaired[:, 2].mean() < 0.002


def test_a_row_of_zero_curves_is_uniform():
    sure = np.full((3, 3), 0.1) + 0.7 * np.eye(3)
    fitted = HistogramBinning(ct.UniformBins(2)).fit(sure, [0, 1, 2])
    np.testing.assert_allclose(fitted([[0.4, 0.3, 0.3], [0.1, 0.1, 0.8]])[0], np.full(3, 1 / 3))
    np.testing.assert_array_equal(fitted(sure), np.eye(3))


@pytest.mark.parametrize("method", METHODS)
def test_rows_of_the_fit_are_known_again(method):
    logits, labels = overconfident(300, 3)
    data = ct.Predictions.of(ref.softmax(logits), labels)
    fitted = method.fit(logits, labels, from_logits=True)
    order = np.random.default_rng(0).permutation(300)
    for rows in (slice(None), order, order[:40]):
        again = fitted(ct.Predictions.of(data.probs[rows], data.labels[rows]))
        with pytest.raises(ct.StatisticError, match=r"was fitted on \d+ of these \d+ rows"):
            refuse_fitted_rows(again)
    other, outcome = overconfident(300, 3, seed=1)
    refuse_fitted_rows(fitted(ct.Predictions.of(ref.softmax(other), outcome)))
    refuse_fitted_rows(data)


def test_few_known_rows_are_let_through_and_said():
    logits, labels = overconfident(200, 3)
    data = ct.Predictions.of(ref.softmax(logits), labels)
    fitted = TemperatureScaling().fit(data.take(np.arange(100)))
    seen = fitted(data.take(np.arange(95, 200)))
    refuse_fitted_rows(seen)
    (step,) = seen.provenance
    assert (step.method, step.n_fitted, step.n_overlap) == (repr(TemperatureScaling()), 100, 5)
    with pytest.raises(ct.StatisticError, match="was fitted on 6 of these 106 rows"):
        refuse_fitted_rows(fitted(data.take(np.arange(94, 200))))
    with pytest.raises(ct.StatisticError, match="was fitted on 5 of these 10 rows"):
        refuse_fitted_rows(seen.take(np.arange(10)))
    both = ct.Predictions.of([0.5], [1])
    for method, p in ((TemperatureScaling(), [0.1, 0.8, 0.3]), (PlattScaling(), [0.2, 0.7, 0.6])):
        both = method.fit(p, [0, 1, 1])(both)
    assert [step.n_overlap for step in both.provenance] == [0, 0]


def test_rows_are_known_by_their_ids():
    rng = np.random.default_rng(3)
    p = rng.random(60).round(1)
    labels = (rng.random(60) < p).astype(int)
    data = ct.Predictions.of(p, labels, ids=np.arange(60))
    fitted = PlattScaling().fit(data.take(np.arange(30)))
    refuse_fitted_rows(fitted(data.take(np.arange(30, 60))))
    with pytest.raises(ct.StatisticError, match="was fitted on 3 of these 33 rows"):
        refuse_fitted_rows(fitted(data.take(np.arange(27, 60))))
    by_name = PlattScaling().fit(p, labels, ids=[str(i) for i in range(60)])
    with pytest.raises(ct.StatisticError, match="was fitted on 10 of these 10 rows"):
        refuse_fitted_rows(by_name(data.take(np.arange(10))))
    refuse_fitted_rows(by_name(ct.Predictions.of(p, labels, ids=np.arange(60, 120))))


def test_equal_predictions_are_not_equal_rows():
    # Thirty days of "80 %" are not the next thirty days of "80 %"; tenths repeat all the time.
    days = ct.Predictions.of([0.8] * 30, [1] * 18 + [0] * 12)
    refuse_fitted_rows(PlattScaling().fit(days)(days))
    rng = np.random.default_rng(8)
    for n in (30, 100, 1000):
        p, q = rng.integers(1, 10, (2, n)) / 10.0
        fitted = PlattScaling().fit(p, rng.random(n) < p)
        refuse_fitted_rows(fitted(ct.Predictions.of(q, rng.random(n) < q)))


def test_a_fit_that_does_not_converge_is_refused(monkeypatch):
    monkeypatch.setattr("caltest.recalibration.GRADIENT", 1e-40)
    with pytest.raises(ct.StatisticError, match="has not converged"):
        TemperatureScaling().fit([[0.6, 0.4], [0.7, 0.3], [0.7, 0.3]], [0, 1, 0])


def test_against_published_temperature_of_digits():
    validation, test = (ct.examples.digits("overfit", s) for s in ("validation", "test"))
    scaled = TemperatureScaling().fit(validation)
    assert scaled.map.temperature == pytest.approx(1.69, abs=0.01)
    repaired = scaled(test)
    assert repaired.probs.max(axis=1).mean() == pytest.approx(0.796, abs=0.002)
    assert ct.ECE(10)(ct.TopK(1)(repaired)) == pytest.approx(0.038, abs=0.001)
    early = TemperatureScaling().fit(ct.examples.digits("best", "validation"))
    assert early.map.temperature == pytest.approx(0.88, abs=0.01)
