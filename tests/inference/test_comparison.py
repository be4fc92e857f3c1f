"""Comparing two models and more: against definitions, enumeration, theory, and as users meet it."""

from types import SimpleNamespace

import numpy as np
import pytest
from conftest import seen
from scipy.special import ndtr
from twins import comparison as reference

import caltest as ct
from caltest.inference import compare, compare_models
from caltest.inference.comparison import ComparedModel, _letter_groups
from caltest.inference.null import holm
from caltest.statistics import RMSCE, DebiasedL1, DebiasedL2

EVENT = ct.OneVsRest(1)


def two(p):
    return np.column_stack([1.0 - p, p])


def right_and_steep(rng, n, slope=1.8):
    u = rng.normal(size=n)
    return two(ndtr(u)), two(ndtr(slope * u)), (u + rng.normal(size=n) > 0).astype(int)


def vectors(rng, n, k):
    """Two models of K classes with tied, certain and impossible predictions among them."""
    a, b = rng.dirichlet(np.full(k, 0.5), (2, n))
    a[: n // 4] = np.eye(k)[rng.integers(k, size=n // 4)]
    b[n // 4 : n // 2] = b[n // 4]
    return a, b, rng.integers(k, size=n)


def by_rows(statistic):
    """Return a statistic as a function of induced rows and labels."""
    return lambda probs, labels: statistic(seen(probs, labels))


@pytest.mark.slow
@pytest.mark.parametrize("statistic", [ct.ECE(4), DebiasedL2(2)])
def test_swap_against_enumeration(rng, statistic):
    a, b, labels = vectors(rng, 9, 3)
    looks = [ct.TopK(1)(ct.Predictions(p, labels)) for p in (a, b)]  # labels depend on the model
    exact = reference.swap_pvalue(by_rows(statistic), *((d.probs, d.labels) for d in looks))
    result = compare(a, b, labels, statistic, method="swap", n_resamples=4000, rng=1)
    assert abs(result.pvalue - exact) < 4 * result.pvalue_error + 1 / 4000
    assert (result.low, result.tested) == (None, result.statistic)


@pytest.mark.slow
def test_swap_without_pairs_against_enumeration(rng):
    a, b, labels = vectors(rng, 6, 2)
    looks = [EVENT(ct.Predictions(*rows)) for rows in ((a, labels), (b[:4], labels[:4]))]
    exact = reference.shuffle_pvalue(by_rows(ct.ECE(4)), *((d.probs, d.labels) for d in looks))
    run = {"lens": EVENT, "method": "swap", "n_resamples": 4000, "rng": 1}
    result = compare(a, b[:4], labels, ct.ECE(4), labels_b=labels[:4], **run)
    assert abs(result.pvalue - exact) < 4 * result.pvalue_error + 1 / 4000


@pytest.mark.parametrize("lens", [ct.TopK(1), ct.TopK(2), ct.Canonical(), ct.OneVsRest(0)])
def test_order_of_models_and_rows(rng, lens):
    a, b = rng.dirichlet(np.ones(4), (2, 60))
    y = rng.integers(4, size=60)
    options = {"lens": lens, "n_resamples": 1, "rng": 1, "statistic": DebiasedL2(3)}
    forth, back = compare(a, b, y, **options), compare(b, a, y, **options)
    assert back.difference == -forth.difference
    assert back.pvalue == pytest.approx(forth.pvalue, rel=1e-9)
    assert (back.low, back.high) == pytest.approx((-forth.high, -forth.low))
    order = rng.permutation(60)
    moved = compare(a[order], b[order], y[order], **options)
    assert (moved.difference, moved.pvalue) == pytest.approx((forth.difference, forth.pvalue))


def test_a_model_and_itself(rng):
    a, _, y = vectors(rng, 50, 3)
    result = compare(a, a, y, n_resamples=9, rng=1)
    assert (result.difference, result.pvalue, result.low, result.high) == (0.0, 1.0, 0.0, 0.0)
    assert result.verdict == "tied"
    assert [s.pvalue for s in result.scores if s.pvalue is not None] == [1.0]  # log is infinite
    table = compare_models({"a": np.zeros(4), "b": np.zeros(4)}, [0, 1, 1, 0])
    assert "infinite: an outcome had predicted probability 0" in str(table)
    assert compare(a, a, y, method="swap", n_resamples=99, rng=1).pvalue == 1.0


def test_two_rows_and_one():
    result = compare([0.9, 0.9], [0.6, 0.6], [1, 1], lens=EVENT, n_resamples=9, rng=1)
    assert result.difference == pytest.approx(0.01 - 0.16)
    assert result.low < 0.0 < result.high
    with pytest.raises(ct.StatisticError, match="no two rows of A share a cell"):
        compare([0.9], [0.6], [1], lens=EVENT, n_resamples=9)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [31, 38])
def test_an_error_in_one_cell_that_cancels_by_luck_does_not_make_a_model_better(seed):
    # One is wrong by .133 in 42 rows, the other by .0061 everywhere: the squared errors are equal.
    rng, n = np.random.default_rng(seed), 20_000
    bad = np.arange(n) < 42
    q = np.where(bad, 0.5, rng.uniform(0.02, 0.58, n))
    y = (rng.random(n) < q).astype(int)
    answer = compare(two(np.where(bad, 0.633, q)), two(q + 0.0061), y, lens=EVENT)
    assert answer.difference < 0.0
    assert 0.05 < answer.pvalue < 0.1  # without the least favourable cell .021 and .015


def test_an_l1_error_is_tested_by_its_squares(rng):
    a, b, y = right_and_steep(rng, 500)
    for statistic in (ct.ECE(10), ct.MCE(10), RMSCE(ct.UniformBins(10)), DebiasedL1(10)):
        result = compare(a, b, y, statistic, lens=EVENT, n_resamples=99, rng=1)
        plain = compare(a, b, y, DebiasedL2(10), lens=EVENT, n_resamples=99, rng=1)
        assert result.tested == "DebiasedL2(UniformBins(10))"
        assert (result.pvalue, result.low) == (plain.pvalue, plain.low)
        own = ct.calibration_test(a, y, statistic, lens=EVENT, n_resamples=99, rng=1)
        assert (result.pvalue_a, result.test_a.null_mean) == (own.pvalue, own.null_mean)


def test_the_larger_estimate_with_the_larger_p_value():
    # Vaicenavicius et al. (2019, §4.3): estimates and p-values may rank two models differently.
    rng = np.random.default_rng(2)
    signs = rng.integers(0, 2, 1000) * 2 - 1
    x = rng.normal(signs, 1.0)
    perfect, constant = 1.0 / (1.0 + np.exp(2.0 * x)), np.full(1000, 0.45)
    models = (np.column_stack([p, 1.0 - p]) for p in (perfect, constant))
    result = compare(*models, signs > 0, ct.ECE(100), lens=ct.OneVsRest(0), rng=1)
    assert result.test_a.estimate > result.test_b.estimate
    assert result.pvalue_a > 0.05 > result.pvalue_b
    assert result.test_a.estimate == pytest.approx(0.0838, abs=5e-5)
    assert result.test_b.estimate == pytest.approx(0.0500, abs=5e-5)
    assert [s.difference < 0 and s.pvalue < 1e-6 for s in result.scores] == [True, True]


def test_all_pairs(rng):
    u = rng.normal(size=1500)
    y = (u + rng.normal(size=1500) > 0).astype(int)
    models = {f"slope {s}": two(ndtr(s * u)) for s in (1.0, 1.05)}
    models |= {"high": two(ndtr(u + 0.5)), "low": two(ndtr(u - 0.5))}
    table = compare_models(models, y, lens=EVENT, n_resamples=9, rng=1)
    assert (len(table.pairs), set(table.names[:2])) == (6, {"slope 1.0", "slope 1.05"})
    assert list(table.adjusted) == holm([r.pvalue for r in table.pairs])
    assert [set(g) for g in table.indistinguishable] == [set(table.names[:2]), set(table.names[2:])]
    alone = compare(models["slope 1.0"], models["high"], y, lens=EVENT, n_resamples=9)
    assert table.pair("high", "slope 1.0").pvalue == pytest.approx(alone.pvalue)


def test_groups_against_all_subsets(rng):
    names = tuple("abcdefg")
    pairs = [frozenset(p) for p in reference.combinations(names, 2)]
    for share in (0.1, 0.3, 0.5, 0.9):
        for _ in range(10):
            together = {p for p in pairs if rng.random() > share}
            found, apart = _letter_groups(names, together), set(pairs) - together
            assert {frozenset(g) for g in found} == reference.largest_groups(names, apart)
            assert len(set(found)) == len(found)


def test_variances_of_labels_by_enumeration(rng):
    probs, changes = rng.dirichlet(np.ones(3), 5), rng.normal(size=(5, 3))
    side = SimpleNamespace(data=ct.Predictions(probs, np.zeros(5, dtype=np.int64)))
    rows = zip(probs, changes, strict=True)
    expected = [np.average((c - p @ c) ** 2, weights=p) for p, c in rows]
    np.testing.assert_allclose(ComparedModel.label_variances(side, changes), expected, rtol=1e-12)


def test_monte_carlo_error_of_a_swap(rng):
    p, q = rng.random(60), rng.random(60)
    result = ct.compare(p, q, rng.random(60) < p, method="swap", n_resamples=199, rng=1)
    error = np.sqrt(result.pvalue * (1.0 - result.pvalue) / 199)
    assert result.pvalue_error == pytest.approx(error, rel=1e-12)
