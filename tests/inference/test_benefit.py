"""Promised against realised utility, and decision curves."""

from itertools import product

import numpy as np
import pytest

import caltest as ct
from caltest.errors import InvalidPredictionsError, StatisticError, UnsupportedFactError

COSTS = ct.Costs([[0, 4, 9], [3, 0, 2], [1, 1, 1]])


def events(seed, n, a=0.3, b=6.0):
    rng = np.random.default_rng(seed)
    p = rng.beta(a, b, n)
    return p, (rng.random(n) < p).astype(int)


def test_exact_pvalue_is_that_of_all_outcomes():
    probs = np.random.default_rng(5).dirichlet([1, 1, 1], 6)
    labels = np.array([0, 2, 1, 1, 0, 2])
    table = COSTS(probs)
    promised = (probs * table).sum(axis=1)
    distance = abs((table[np.arange(6), labels] - promised).sum())
    total = 0.0
    for outcome in product(range(3), repeat=6):
        away = abs((table[np.arange(6), outcome] - promised).sum())
        total += probs[np.arange(6), outcome].prod() * (away >= distance - 1e-9)
    result = ct.promise(probs, labels, COSTS)
    assert result.exact
    assert result.pvalue == pytest.approx(total, abs=1e-14)
    # The same number came out of the reference program of the specification.
    assert result.pvalue == pytest.approx(0.059269945820642864, abs=1e-14)


def test_recorded_costs_with_abstention():
    costs = ct.Costs(np.vstack([1 - np.eye(10), np.full(10, 0.15)]))
    result = ct.promise(ct.examples.digits("overfit"), None, costs)
    # From the specification: promised cost .0595, realised .0971, z −8.7.
    assert (-result.promised, -result.realised) == pytest.approx((0.0595, 0.0971), abs=5e-5)
    assert result.z == pytest.approx(-8.7, abs=0.05)


def test_threshold_is_exact_for_any_threshold():
    p, y = events(1, 300)
    result = ct.promise(p, y, ct.Costs.threshold(0.0713))
    acted, n_events = p >= 0.0713, int(y[p >= 0.0713].sum())
    law = np.ones(1)
    for chance in p[acted]:
        law = np.convolve(law, [1 - chance, chance])
    away = np.abs(np.arange(law.size) - p[acted].sum())
    assert result.exact
    expected = law[away >= abs(n_events - p[acted].sum()) - 1e-9].sum()
    assert result.pvalue == pytest.approx(expected, abs=1e-12)


def test_utilities_without_a_grid_are_simulated():
    probs = np.random.default_rng(2).dirichlet([1, 1, 1], 40)
    labels = np.random.default_rng(3).integers(0, 3, 40)
    result = ct.promise(probs, labels, lambda p: np.sqrt(p), n_resamples=499, rng=1)
    assert not result.exact
    assert result.n_resamples == 499
    again = ct.promise(probs, labels, lambda p: np.sqrt(p), n_resamples=499, rng=1)
    assert result.pvalue == again.pvalue


def test_simulated_and_exact_pvalues_agree():
    probs = np.random.default_rng(4).dirichlet([1, 1, 1], 40)
    labels = np.random.default_rng(5).integers(0, 3, 40)
    exact = ct.promise(probs, labels, COSTS)
    moved = ct.promise(  # adding what does not depend on the label changes no sum
        probs, labels, lambda p: COSTS(p) + np.pi * p[:, :1] ** 2, n_resamples=9999, rng=1
    )
    assert exact.pvalue == pytest.approx(moved.pvalue, abs=0.02)


def test_net_benefit_is_that_of_counts():
    p, y = events(6, 400, 1.0, 3.0)
    t = np.array([0.1, 0.3, 0.6])
    curve = ct.decision_curve(p, y, t)
    for j, threshold in enumerate(t):
        acts = p >= threshold
        true, false = (acts & (y == 1)).sum(), (acts & (y == 0)).sum()
        expected = (true - false * threshold / (1 - threshold)) / 400
        assert curve.net_benefit[j] == pytest.approx(expected, abs=1e-15)
        assert ct.promise(p, y, ct.Costs.threshold(threshold)).realised == pytest.approx(expected)
    rate = y.mean()
    assert curve.treat_all == pytest.approx(rate - (1 - rate) * t / (1 - t))


def test_simultaneous_limits_contain_pointwise_ones():
    curve = ct.decision_curve(*events(7, 300, 1.0, 3.0))
    assert (curve.low_all <= curve.low).all()
    assert (curve.high_all >= curve.high).all()
    assert curve.critical < 3.3  # Bonferroni's for 50 thresholds


def test_interval_of_a_model_without_variation_is_not_a_point():
    p, y = np.full(200, 0.02), np.zeros(200, dtype=int)
    result = ct.promise(p, y, ct.Costs.threshold(0.5))  # nobody is treated
    assert result.low < 0.0 < result.high


def test_a_better_model_is_shown_to_be_better():
    rng = np.random.default_rng(8)
    score = rng.normal(-1.0, 1.5, 3000)
    p = 1.0 / (1.0 + np.exp(-score))
    y = (rng.random(3000) < p).astype(int)
    noise = 1.0 / (1.0 + np.exp(-(score + rng.normal(0, 2.0, 3000))))
    curve = ct.decision_curve(p, y, [0.2, 0.3, 0.4], against=noise, against_name="noisy")
    assert (curve.difference_low > 0.0).all()
    assert "It gains more than noisy at thresholds from 0.2 to 0.4." in str(curve)
    assert curve.useful.size


@pytest.mark.slow
def test_picture_has_all_curves():
    picture = ct.decision_curve(*events(9, 200, 1.0, 3.0), against=np.full(200, 0.25)).plot()
    assert {"band", "always", "never", "promised", "other", "model"} <= set(picture.artists)


def test_results_survive_json():
    p, y = events(10, 50, 1.0, 3.0)
    for result in (ct.promise(p, y, ct.Costs.threshold(0.2)), ct.decision_curve(p, y, [0.2, 0.4])):
        assert type(result).from_json(result.to_json()) == result


@pytest.mark.parametrize("thresholds", [[0.0, 0.5], [0.5, 1.0], [0.5, 0.2], []])
def test_thresholds_that_are_no_ascending_probabilities_are_refused(thresholds):
    with pytest.raises(StatisticError, match="thresholds"):
        ct.decision_curve(*events(1, 20), thresholds)


def test_missing_utilities_and_foreign_observations_are_refused():
    p, y = events(1, 20)
    with pytest.raises(StatisticError, match="promise needs a utility"):
        ct.promise(p, y)
    with pytest.raises(StatisticError, match="for two classes"):
        ct.decision_curve(np.eye(3) * 0.4 + 0.2, [0, 1, 2])
    with pytest.raises((StatisticError, InvalidPredictionsError)):
        ct.decision_curve(p, y, against=p[:10])
    with pytest.raises(StatisticError, match="folds"):
        ct.decision_curve(p, y, folds=np.arange(20) // 10)


def test_outcomes_of_probability_0_are_noted():
    result = ct.promise([0.0, 1.0, 0.5], [1, 0, 1], ct.Costs.threshold(0.2))
    assert any("2 outcomes had probability 0" in note for note in result.notes)


def test_the_picture_of_a_promise_shows_both_utilities_and_the_interval():
    p, y = events(3, 200, 1.0, 3.0)
    result = ct.promise(p, y, ct.Costs.threshold(0.2))
    artists = result.plot().artists
    assert {"expected", "interval", "values"} <= set(artists)
    at = artists["values"].get_offsets()[:, 0]
    np.testing.assert_allclose(at, [result.promised, result.realised])


@pytest.mark.parametrize("asked", [("--threshold", "0.2"), ("--curve",)])
def test_decide_draws_on_the_command_line(asked, done, tmp_path):
    p, y = events(3, 200, 1.0, 3.0)
    rows, picture = tmp_path / "rows.csv", tmp_path / "picture.svg"
    rows.write_text("p,y\n" + "".join(f"{a:.3f},{b}\n" for a, b in zip(p, y, strict=True)))
    done("decide", str(rows), *asked, "--plot", str(picture))
    assert "<svg" in picture.read_text(encoding="utf-8")


# ------------------------------------------------------------------------------
# Weights and clusters.


WEIGHTED = np.array([1, 3, 2, 1, 1, 2])


def test_exact_pvalue_of_weighted_rows_is_that_of_all_outcomes():
    probs = np.random.default_rng(5).dirichlet([1, 1, 1], 6)
    labels = np.array([0, 2, 1, 1, 0, 2])
    table = COSTS(probs)
    promised = (probs * table).sum(axis=1)
    distance = abs(WEIGHTED @ (table[np.arange(6), labels] - promised))
    total = 0.0
    for outcome in product(range(3), repeat=6):
        away = abs(WEIGHTED @ (table[np.arange(6), outcome] - promised))
        total += probs[np.arange(6), outcome].prod() * (away >= distance - 1e-9)
    result = ct.promise(probs, labels, COSTS, weights=WEIGHTED)
    assert result.exact
    assert result.pvalue == pytest.approx(total, abs=1e-14)


def test_weighted_pvalues_agree_whether_exact_or_drawn():
    p, y = events(11, 200, 1.0, 3.0)
    weights = np.random.default_rng(1).integers(1, 5, 200)
    exact = ct.promise(p, y, ct.Costs.threshold(0.2), weights=weights)
    drawn = ct.decision_curve(p, y, [0.1, 0.2], weights=weights)
    assert exact.exact
    assert drawn.n_resamples == 9999
    assert drawn.pvalues[1] == pytest.approx(exact.pvalue, abs=0.02)


def test_total_of_events_in_clusters_has_the_pvalue_of_the_mean_difference():
    p, y = events(12, 300, 1.0, 3.0)
    design = {
        "clusters": np.arange(300) // 5,
        "weights": np.random.default_rng(1).random(300) + 0.5,
    }
    event = lambda probs: np.tile([0.0, 1.0], (len(probs), 1))  # noqa: E731
    result = ct.promise(p, y, event, n_resamples=9999, rng=1, **design)
    test = ct.calibration_test(p, y, ct.MeanDifference(), n_resamples=9999, rng=1, **design)
    # Labels come in another order: three standard errors of 9999 draws
    assert result.pvalue == pytest.approx(test.pvalue, abs=0.015)
    assert result.difference == pytest.approx(test.estimate)
    assert result.z == pytest.approx(test.estimate / test.null_std, rel=0.03)


def test_curve_of_clusters_has_the_pvalues_of_its_thresholds():
    p, y = events(13, 300, 1.0, 3.0)
    clusters = np.random.default_rng(2).integers(0, 60, 300)
    thresholds = [0.05, 0.2, 0.21, 0.6, 0.999]
    curve = ct.decision_curve(p, y, thresholds, clusters=clusters, n_resamples=499, rng=1)
    for t, pvalue in zip(thresholds, curve.pvalues, strict=True):
        single = ct.promise(p, y, ct.Costs.threshold(t), clusters=clusters, n_resamples=499, rng=1)
        assert pvalue == pytest.approx(single.pvalue, abs=1e-12)


def slow_limits(gains, weights, clusters, ends, pseudo, quantile):
    """Limits of a weighted mean from sums over clusters and pseudo-clusters, row by row."""
    mass, total = {}, {}
    for gain, weight, cluster in zip(gains, weights, clusters, strict=True):
        mass[cluster] = mass.get(cluster, 0.0) + weight
        total[cluster] = total.get(cluster, 0.0) + weight * gain
    size = sum(m**2 for m in mass.values()) / sum(mass.values())
    number = sum(mass.values()) / size
    units = [(1.0, mass[c], total[c]) for c in mass] + [(pseudo, size, size * e) for e in ends]
    whole = sum(times * m for times, m, _ in units)
    mean = sum(times * s for times, _, s in units) / whole
    spread = sum(times * (s - m * mean) ** 2 for times, m, s in units) / whole**2
    count = number + 2.0 * pseudo
    error = (spread * count / (count - 1.0)) ** 0.5
    point = quantile(count - 1.0)
    return mean - point * error, mean + point * error


def test_limits_of_weighted_clusters_are_those_of_a_slow_twin():
    from scipy.stats import t as student

    p, y = events(14, 200, 1.0, 3.0)
    rng = np.random.default_rng(3)
    clusters, weights = rng.integers(0, 50, 200), rng.random(200) + 0.2
    result = ct.promise(
        p, y, ct.Costs.threshold(0.2), clusters=clusters, weights=weights, n_resamples=99, rng=1
    )
    gains = np.where(p >= 0.2, np.where(y == 1, 1.0, -0.25), 0.0)
    slow = slow_limits(
        gains, weights, clusters, (-0.25, 1.0), 1.0, lambda freedom: student.ppf(0.975, freedom)
    )
    assert (result.low, result.high) == pytest.approx(slow, abs=1e-12)
    assert result.realised == pytest.approx(np.average(gains, weights=weights))


def test_clusters_of_copies_have_the_limits_of_single_rows():
    p, y = events(15, 120, 1.0, 3.0)
    once = ct.decision_curve(p, y, [0.1, 0.3], against=np.full(120, 0.25))
    again = ct.decision_curve(
        np.repeat(p, 4), np.repeat(y, 4), [0.1, 0.3], against=np.full(480, 0.25),
        clusters=np.repeat(np.arange(120), 4), n_resamples=99,
    )  # fmt: skip
    for name in ("low", "high", "low_all", "difference_low", "difference_high", "treat_all"):
        assert getattr(again, name) == pytest.approx(getattr(once, name), abs=1e-12)


def test_the_unit_of_weights_does_not_matter():
    p, y = events(16, 150, 1.0, 3.0)
    weights = np.random.default_rng(4).integers(1, 4, 150)
    one, other = (
        ct.promise(p, y, ct.Costs.threshold(0.2), weights=unit * weights) for unit in (1, 7)
    )
    assert (one.pvalue, one.low, one.high) == pytest.approx((other.pvalue, other.low, other.high))


def test_two_columns_of_clusters_are_refused():
    p, y = events(17, 60, 1.0, 3.0)
    two = {"reader": np.arange(60) % 6, "patient": np.arange(60) // 5}
    with pytest.raises(UnsupportedFactError, match="two columns of clusters"):
        ct.decision_curve(p, y, [0.2], clusters=two)
