"""Forecasts several steps ahead: blocks that begin anywhere, their strength, refusals."""

import warnings
from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from scipy.special import expit, logit, ndtr

import caltest as ct
from caltest.inference._input import neighbours
from caltest.inference.dependence import blocks
from caltest.nulls.agreement import dependent
from caltest.nulls.clusters import Overlap, centred
from caltest.statistics import prepare

P = np.array([0.15, 0.25, 0.35, 0.15, 0.55, 0.45, 0.75, 0.85, 0.65, 0.75, 0.95, 0.35])
Y = np.array([0, 1, 1, 0, 0, 0, 1, 0, 1, 1, 1, 1])
EVERY = np.array(list(product((0, 1), repeat=12)))
#: By λ: E N*, P(N* ≤ N), and exact p-values of ECE(5), |Σ r|, Kuiper, CoxScore, by enumeration.
ENUMERATED = {
    0.25: (0.56916666667, 0.95616801734, 0.01422343631, 0.76283495576, 0.45474801328, 0.5911938147),
    1.0: (2.27666666667, 0.90373583333, 0.05084302083, 0.819868125, 0.62513635417, 0.76215166667),
}
STATISTICS = (ct.ECE(5), ct.CalibrationInTheLarge(), ct.Kuiper(), ct.CoxScore())


def series(horizon=3):
    data = ct.OneVsRest(1)(ct.Predictions.of(P, Y, horizon=horizon))
    return replace(data, clusters=np.zeros(12, dtype=np.int64))


def near(h):
    t = np.arange(12)
    return (np.abs(t[:, None] - t) < h) & ~np.eye(12, dtype=bool)


def law_of(group, joining):
    """The law of all label vectors when rows join the draw of their group: a slow twin."""
    law = np.ones(len(EVERY))
    for g in np.unique(group):
        rows = np.flatnonzero(group == g)
        part = np.zeros(len(EVERY))
        for joined in product((False, True), repeat=rows.size):
            a, b = rows[np.array(joined)], rows[~np.array(joined)]
            low = np.where(EVERY[:, a] == 0, P[a], 0.0).max(axis=1, initial=0.0)
            high = np.where(EVERY[:, a] == 1, P[a], 1.0).min(axis=1, initial=1.0)
            alone = np.where(EVERY[:, b] == 1, P[b], 1.0 - P[b]).prod(axis=1)
            weight = joining**a.size * (1.0 - joining) ** b.size
            part += weight * np.maximum(high - low, 0.0) * alone
        law *= part
    return law


def moving_law(dependence, h=3):
    offsets = [(np.arange(12) + o) // h for o in range(h)]
    return np.mean([law_of(group, np.sqrt(dependence)) for group in offsets], axis=0)


def latent(rng, n, h, rho=0.8):
    """Return forecasts h steps ahead of the sign of a latent autoregression, and outcomes."""
    z, noise = np.zeros(n + h), rng.standard_normal(n + h)
    z[0] = noise[0]
    for t in range(1, n + h):
        z[t] = rho * z[t - 1] + np.sqrt(1.0 - rho**2) * noise[t]
    return ndtr(rho**h * z[:n] / np.sqrt(1.0 - rho ** (2 * h))), (z[h:] > 0).astype(int)


def test_limits_of_the_example():
    data = series()
    overlap = Overlap(data)
    # by other code, from the pairs of rows fewer than three apart
    assert overlap(data.labels[None, :])[0, 0] == pytest.approx(1.23125, abs=1e-12)
    assert overlap.degree(None) == 1.0
    assert neighbours(data) == 0.0  # too few surprises


@pytest.mark.parametrize("dependence", [0.25, 1.0])
def test_enumerated_values(dependence):
    data, law = series(), moving_law(dependence)
    residuals, pairs = EVERY - P, near(3).astype(float)
    products = np.einsum("bi,ij,bj->b", residuals, pairs, residuals)
    agreed = Overlap(data)(1 - EVERY)[:, 0]
    expected = ENUMERATED[dependence]
    assert law @ EVERY == pytest.approx(P, abs=1e-12)
    assert products @ law == pytest.approx(expected[0], abs=1e-8)
    # 1.23125 is what is seen: test_limits_of_the_example
    assert law[agreed <= 1.23125 + 1e-9].sum() == pytest.approx(expected[1], abs=1e-8)
    code = 2 ** np.arange(12)[::-1]
    drawn = dependent(data, dependence)((5, 6), 0, 60_000)
    shares = np.bincount((1 - drawn) @ code, minlength=4096) / 60_000
    for statistic, exact in zip(STATISTICS, expected[2:], strict=True):
        prepared = prepare(statistic, data)
        values, seen = np.abs(prepared.batch(1 - EVERY)), abs(prepared.observed)
        reaching = values >= seen - 1e-9
        assert law[reaching].sum() == pytest.approx(exact, abs=1e-8)
        assert shares[reaching].sum() == pytest.approx(exact, abs=4 * np.sqrt(0.25 / 60_000))


def test_several_classes_share_what_they_should():
    """E[r_i · r_j] = λ (1 − |t_i − t_j| / h) c_ij, c_ij of a common draw, of three classes."""
    rng = np.random.default_rng(0)
    probs = rng.dirichlet(np.ones(3), 12)
    labels = [rng.choice(3, p=row) for row in probs]
    data = ct.Canonical()(ct.Predictions.of(probs, labels, horizon=3))
    data = replace(data, clusters=np.zeros(12, dtype=np.int64))
    rows = dependent(data, 1.0)((1, 2), 0, 100_000)
    hits = rows[:, :, None] == np.arange(3)
    for k in range(3):
        np.testing.assert_allclose(hits[:, :, k].mean(axis=0), probs[:, k], atol=0.006)
    ratios = np.maximum(probs[3][None] / probs[3][:, None], probs[4][None] / probs[4][:, None])
    common = (1.0 / ratios.sum(axis=1)).sum() - probs[3] @ probs[4]
    r = hits - probs
    assert (r[:, 3] * r[:, 4]).sum(axis=1).mean() == pytest.approx(common * 2 / 3, abs=0.006)
    np.testing.assert_allclose(Overlap(data)(rows[:4])[0], _overlap(data, rows[0]), atol=1e-9)


@pytest.mark.parametrize("n_classes", [2, 3])
def test_rows_share_whether_the_likeliest_label_is_right(n_classes):
    """E[x_i x_j] = λ (1 − |t_i − t_j| / h) (min(m_i, m_j) − m_i m_j), x right less its chance m."""
    probs = np.random.default_rng(0).dirichlet(np.ones(n_classes), 12)
    data = ct.Canonical()(ct.Predictions.of(probs, np.arange(12) % n_classes, horizon=3))
    data = replace(data, clusters=np.zeros(12, dtype=np.int64))
    rows = dependent(data, 0.64, "correctness")((1, 2), 0, 100_000)
    shares = (rows[:, :, None] == np.arange(n_classes)).mean(axis=0)
    np.testing.assert_allclose(shares, probs, atol=0.006)
    m = probs.max(axis=1)
    x = (rows == probs.argmax(axis=1)) - m
    for i, j in ((3, 4), (4, 6), (2, 5)):
        expected = 0.64 * (1 - (j - i) / 3) * (min(m[i], m[j]) - m[i] * m[j])
        assert (x[:, i] * x[:, j]).mean() == pytest.approx(expected, abs=0.004)
    right = rows[0] == probs.argmax(axis=1)
    observed = Overlap(replace(data, labels=rows[0]), "correctness")
    known = Overlap(ct.Predictions.of(np.column_stack([1 - m, m]), right.astype(int), horizon=3))
    assert observed(observed.induced.labels[None]) == pytest.approx(known(known.data.labels[None]))


def easy_weeks(rng, n, h):
    """Return predictions, and labels that are right together in weeks, as in easy times."""
    p = rng.random(n)
    right = rng.random(n // h + 1)[np.arange(n) // h] < np.maximum(p, 1.0 - p)
    return p, (right == (p >= 0.5)).astype(int)


def _overlap(data, labels):
    """Σ x_i · x_j over pairs less than h apart, of all and of one quarter of the predictions.

    x is centred in quarters by the largest prediction.
    """
    x = (labels[:, None] == np.arange(3)) - data.probs
    quarter = 4 * np.argsort(np.argsort(data.probs.max(axis=1))) // 12
    for each in range(4):
        x[quarter == each] -= x[quarter == each].mean(axis=0)
    products = (x @ x.T) * near(3)
    return products.sum(), products[quarter[:, None] == quarter].sum()


def test_rows_that_exclude_each_other_do_not_hide_those_that_agree():
    """A block shares one uniform, which the middle third of the predictions reads backwards."""
    rng = np.random.default_rng(8)
    p = rng.uniform(0.02, 0.98, 500)
    shared = rng.random(51)[(np.arange(500) + 4) // 10]
    y = np.where(abs(p - 0.5) < 0.16, shared, 1.0 - shared) < p
    data = ct.OneVsRest(1)(ct.Predictions.of(p, y.astype(int), horizon=10))
    overlap = Overlap(replace(data, clusters=np.zeros(500, dtype=np.int64)))
    agreed, within = overlap(overlap.data.labels[None])[0]
    assert agreed < 0.4 * within
    assert (overlap.degree(None), overlap.inflation(None)) == (0.9, 1.0)  # of all pairs alone 0.2


def test_one_step_and_orders_change_nothing():
    rng = np.random.default_rng(1)
    p, y = latent(rng, 200, 3)
    plain = ct.calibration_test(p, y, ct.Kuiper(), n_resamples=99, rng=1)
    assert ct.calibration_test(p, y, ct.Kuiper(), n_resamples=99, rng=1, horizon=1) == plain
    days = np.datetime64("2020-01-01") + np.arange(200)
    kind = {"statistic": ct.Kuiper(), "n_resamples": 99, "rng": 1, "horizon": 3}
    first = ct.calibration_test(p, y, **kind)
    order = rng.permutation(200)
    for time in (days, days.astype(str), np.arange(200) * 7.5):
        again = ct.calibration_test(p[order], y[order], time=time[order], **kind)
        assert (again.estimate, again.pvalue) == (first.estimate, first.pvalue)
    assert (first.null, first.n_clusters) == ("SharedRedraws(horizon=3)", None)
    said = "3 of 200 rows · chance λ that two rows share their label: at most 0.9, are right"
    assert str(first.series) == f"{said} together: at most 0.4 (95 % limits)"
    times = np.repeat(np.arange(50), 4)
    one = ct.calibration_test(p, y, ct.Kuiper(), n_resamples=99, rng=1, horizon=1, time=times)
    assert one == ct.calibration_test(p, y, ct.Kuiper(), n_resamples=99, rng=1, clusters=times)
    panel = ct.calibration_test(p, y, horizon=2, time=times, n_resamples=99, rng=1)
    assert str(panel.series).startswith("2 of 50 times, 200 rows · ")
    assert "rows have 50 times: rows of one time or less than 2 times apart" in panel.notes[-1]


def test_blocks_of_other_verbs():
    assert np.bincount(blocks(np.arange(70), 12)).tolist() == [12] * 5 + [10]
    assert np.bincount(blocks(np.arange(65), 12)).tolist() == [12, 12, 12, 12, 17]
    p, y = latent(np.random.default_rng(2), 300, 3)
    block = blocks(np.arange(300), 12)
    seen, known = ct.cox_recalibration(p, y, horizon=3), ct.cox_recalibration(p, y, clusters=block)
    assert (seen.slope_se, seen.lr_pvalue) == (known.slope_se, known.lr_pvalue)
    run = {"n_resamples": 199, "rng": 1}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ct.FewClustersWarning)
        for verb in (ct.confidence_interval, ct.equivalence_test):
            kind = run | ({"tolerance": 0.2} if verb is ct.equivalence_test else {})
            one, other = verb(p, y, horizon=3, **kind), verb(p, y, clusters=block, **kind)
            for name in ("low", "high", "pvalue"):
                assert vars(one).get(name) == vars(other).get(name)
        q = expit(0.8 * logit(p))
        pair = ct.compare(p, q, y, horizon=3, **run)
        other = ct.compare(p, q, y, clusters=block, **run)
        assert (pair.pvalue, pair.scores) == (other.pvalue, other.scores)
    assert pair.test_a.series.dependence is not None
    assert ct.audit(p, y, horizon=3, **run).series.horizon == 3
    assert ct.joint_test(p, y, pairs=[(ct.ECE(), None)], horizon=3, **run).adjust == "Holm"


def test_betting_deals_times():
    p, y = latent(np.random.default_rng(3), 120, 3)
    e = ct.calibration_test(p, y, ct.EValue(), horizon=3)
    dealt = [ct.EValue()(p[j::3], y[j::3]) for j in range(3)]
    assert e.estimate == pytest.approx(max(dealt) / 3, rel=1e-12)
    assert (e.null, e.pvalue) == ("betting", min(1.0, 1 / e.estimate))
    with pytest.raises(ct.StatisticError, match="one row of each time"):
        ct.calibration_test(p, y, ct.EValue(), horizon=2, time=np.arange(120) // 2)


def test_neighbours_are_noticed():
    rng = np.random.default_rng(4)
    p, y = latent(rng, 1000, 2)
    assert "horizon=NUMBER" in " ".join(ct.calibration_test(p, y).notes)
    assert "horizon=NUMBER" not in " ".join(ct.calibration_test(p, y, horizon=2).notes)
    z = [neighbours(ct.Predictions.of(p, (rng.random(1000) < p).astype(int))) for _ in range(200)]
    assert np.mean(np.array(z) > 3.29) <= 0.02
    assert np.std(z) == pytest.approx(1.0, abs=0.2)
    assert neighbours(ct.Predictions.of(*easy_weeks(rng, 1000, 2))) > 3.29
    copies = np.repeat(np.arange(500), 2)
    three = np.repeat(rng.dirichlet(np.ones(3), 500), 2, axis=0)
    labels = np.array([rng.choice(3, p=row) for row in three[::2]])[copies]
    assert neighbours(ct.Predictions.of(three, labels)) > 3.29


def test_reference_of_neighbours():
    """z of the twelve rows of the example, by other code, whatever the surprises."""
    data = series()
    x = centred(data, data.labels[None, :], 0, np.ones(12))[0]
    products = x[1:] * x[:-1]
    assert products.sum() / np.sqrt((products**2).sum()) == pytest.approx(0.83656922475, abs=1e-10)


@pytest.mark.filterwarnings("ignore::caltest.errors.FewClustersWarning")
def test_wrong_calls():
    p, y = latent(np.random.default_rng(5), 300, 3)
    a, b = np.arange(300), np.arange(300) // 3
    cases = {
        "300 times hold 4 forecasts of 70 steps": {"horizon": 70},
        "horizon takes no clusters": {"horizon": 3, "clusters": b},
        "horizon takes no folds": {"horizon": 3, "folds": b % 5},
        "which time= needs": {"time": a},
        "must be a whole number ≥ 1": {"horizon": 2.5},
        "takes rows for independent, but forecasts": {"horizon": 3, "null": "exact"},
        "WildSigns": {"horizon": 3, "null": ct.WildSigns()},
        "OneRowPerCluster": {"horizon": 3, "null": ct.OneRowPerCluster()},
        "ConsistencyResampling": {"horizon": 3, "null": ct.ConsistencyResampling()},
        "is for data with horizon=4": {"null": ct.SharedRedraws(horizon=4)},
        "time: row 2": {"horizon": 3, "time": np.where(a == 2, np.nan, a)},
        "time": {"horizon": 3, "time": np.array(["one", *map(str, a[1:])])},
        "one value for each": {"horizon": 3, "time": a[1:]},
    }
    for words, facts in cases.items():
        with pytest.raises((ct.StatisticError, ct.InvalidPredictionsError), match=words):
            ct.calibration_test(p, y, n_resamples=9, **facts)
    others = {
        "blocks of 80 times": lambda: ct.confidence_interval(p, y, horizon=20),
        "blocks of 84 times": lambda: ct.cox_recalibration(p, y, horizon=21),
        "compare: 300 times": lambda: ct.compare(p, p**2, y, horizon=20),
        "swap": lambda: ct.compare(p, p**2, y, horizon=3, method="swap"),
        "does not take horizon": lambda: ct.meta_analysis(p, y, by=b % 3, horizon=3),
        "Monitor does not take horizon": lambda: ct.Monitor().update(
            ct.Predictions.of(p, y, horizon=3)
        ),
        "a tally keeps no horizon": lambda: ct.Tally.of(p, y, horizon=3),
        "plan does not take horizon": lambda: ct.plan(p, y, horizon=3),
        "have one coupling": lambda: ct.SharedRedraws(horizon=3, coupling=("label", "label")),
    }
    for words, call in others.items():
        with pytest.raises((ct.StatisticError, ct.InvalidPredictionsError), match=words):
            call()


@pytest.mark.slow
@pytest.mark.parametrize("draw", [latent, easy_weeks])
def test_sizes(draw):
    rng, reject, ignored = np.random.default_rng(7), 0, 0
    for _ in range(200):
        p, y = draw(rng, 300, 7)
        run = {"n_resamples": 199, "rng": rng}
        reject += ct.calibration_test(p, y, ct.CoxScore(), horizon=7, **run).pvalue <= 0.05
        ignored += ct.calibration_test(p, y, ct.CoxScore(), **run).pvalue <= 0.05
    assert reject <= 20
    assert ignored >= 30
