"""Pair tallies: a value, and comparisons that those of the rows confirm."""

import json
from types import SimpleNamespace

import numpy as np
import pytest

import caltest as ct
from caltest.tally.pairs import _located

NUMBERS = ("estimate_a", "estimate_b", "difference", "pvalue", "low", "high")


def problem(seed, n=400, shape=(0.5, 0.8), apart=0.05, tilt=0.7):
    """Two models of the same rows, the second worse, with values on edges and exact 0 and 1."""
    rng = np.random.default_rng(seed)
    p = rng.beta(*shape, n)
    p[: n // 10] = p[: n // 10].round(2)
    p[: n // 40] = rng.integers(0, 2, n // 40)
    q = np.clip(p * tilt + apart * rng.normal(size=n), 0, 1)
    return p, q, (rng.random(n) < p).astype(int)


def alike(found, rows, rel):
    for name in NUMBERS:
        assert getattr(found, name) == pytest.approx(getattr(rows, name), rel=rel, abs=1e-9), name
    assert found.verdict == rows.verdict
    assert (found.n, found.paired, found.names) == (rows.n, True, rows.names)


# --- the value ---------------------------------------------------------------------------------


@pytest.mark.parametrize("grid", [7, 480, 4800])
@pytest.mark.parametrize("shape", [(1, 1), (0.01, 5), (0.05, 0.05)])
def test_places_are_those_of_a_tally(grid, shape):
    rng = np.random.default_rng(3)
    p = np.r_[rng.beta(*shape, 900), rng.random(50).round(2), 0, 1, 0.5, 2.0 ** -np.arange(1, 99)]
    tally = ct.Tally.of(p, (rng.random(p.size) < p).astype(int), grid=grid)
    rows = ct.OneVsRest(1)(ct.Predictions.of(p, np.ones(p.size, int)))
    key, t = _located(grid, rows.probs)
    assert np.array_equal(np.unique(key), tally.key)
    sums = np.zeros(tally.key.size, dtype=np.int64)
    np.add.at(sums, np.searchsorted(tally.key, key), t.astype(np.int64))
    assert np.array_equal(sums, tally.sums[:, 1])


@pytest.mark.parametrize("weighted", [False, True])
def test_same_for_any_parts_and_order(weighted):
    p, q, y = problem(1)
    facts = {"weights": np.random.default_rng(1).choice([0.0, 1.0, 2.5], 400)} if weighted else {}
    whole = ct.PairTally.of(p, q, y, **facts)
    assert (whole.a, whole.b) == tuple(ct.Tally.of(x, y, grid=480, **facts) for x in (p, q))
    assert whole.n == (400 if not weighted else (facts["weights"] > 0).sum())
    part = np.random.default_rng(2).integers(0, 5, 400)
    pick = lambda j: {k: v[part == j] for k, v in facts.items()}  # noqa: E731
    parts = [ct.PairTally.of(p[part == j], q[part == j], y[part == j], **pick(j)) for j in range(5)]
    assert sum(parts) == whole == sum(parts[::-1])
    assert whole != ct.PairTally.of(q, p, y, **facts)
    assert whole != whole.a
    assert f"n={whole.n}" in repr(whole)


def test_strata_that_only_one_part_has():
    parts = [ct.PairTally.of([0.2, 0.4], [0.3, 0.3], [0, 1], weights=w) for w in ([3, 1], [2, 5])]
    both = ct.PairTally.of([0.2, 0.4] * 2, [0.3, 0.3] * 2, [0, 1] * 2, weights=[3.0, 1.0, 2.0, 5.0])
    assert parts[0] + parts[1] == both


def test_written_and_read_again(tmp_path):
    pairs = ct.PairTally.of(*problem(2), weights=np.tile([1.0, 2.0], 200))
    assert ct.PairTally.from_json(pairs.to_json()) == pairs
    pairs.to_parquet(tmp_path / "pairs.parquet")
    assert ct.PairTally.from_parquet(tmp_path / "pairs.parquet") == pairs
    content = json.loads(pairs.to_json())
    content["cells"]["n"][0] += 1
    for text, said in [
        (json.dumps(content), "its parts do not fit"),
        (pairs.a.to_json(), "not a pair tally of form 1"),
        ("[1]", "not a pair tally"),
        ("{}", "not a pair tally"),
        ("nonsense", "not a pair tally"),
    ]:
        with pytest.raises(ct.InvalidPredictionsError, match=said):
            ct.PairTally.from_json(text)
    pairs.a.to_parquet(tmp_path / "tally.parquet")
    for reader, name in ((ct.PairTally, "tally.parquet"), (ct.Tally, "pairs.parquet")):
        with pytest.raises(ct.InvalidPredictionsError, match="not the file of a tally"):
            reader.from_parquet(tmp_path / name)


def test_what_does_not_fit_says_so():
    p, q, y = problem(3, 50)
    three = np.full((50, 3), 1 / 3)
    pairs = ct.PairTally.of(p, q, y)
    for arguments, options, kind, said in [
        ((p, q[:9], y), {}, ct.InvalidPredictionsError, "50"),
        ((p, three, y), {}, ct.InvalidPredictionsError, "the same observations and classes"),
        ((ct.Predictions.of(p, y), ct.Predictions.of(q, 1 - y)), {}, ct.InvalidPredictionsError,
         "different labels"),
        ((p, q, y), {"by": ["a", "b"] * 25}, ct.StatisticError, "keeps no by"),
        ((three, three, y), {"lens": ct.Canonical()}, ct.StatisticError, "leaves 3 classes"),
    ]:  # fmt: skip
        with pytest.raises(kind, match=said):
            ct.PairTally.of(*arguments, **options)
    others = {
        "different grids": ct.PairTally.of(p, q, y, grid=60),
        "different lenses": ct.PairTally.of(p, q, y, lens=ct.OneVsRest(0)),
    }
    for said, other in others.items():
        with pytest.raises(ct.StatisticError, match=said):
            pairs + other
    with pytest.raises(TypeError):
        pairs + pairs.a
    for arguments, options, said in [
        ((pairs, p), {}, "leave out probs_b"),
        ((pairs,), {"paired": False}, "leave out probs_b"),
        ((pairs, None, y), {}, "leave out labels"),
        ((pairs,), {"weights": [1]}, "leave out weights"),
        ((pairs,), {"method": "swap"}, "compared by 'z'"),
        ((pairs,), {"lens": ct.TopK(1)}, "cannot be looked at through"),
        ((pairs,), {"statistic": ct.ECE(ct.UniformBins(25))}, "not made of the cells"),
        ((pairs.a, pairs.b), {}, "make a PairTally"),
    ]:
        with pytest.raises(ct.StatisticError, match=said):
            ct.compare(*arguments, **options)


@pytest.mark.parametrize("verb", [ct.calibration_test, ct.audit, ct.confidence_interval])
def test_verbs_of_one_model_say_which_tally_they_take(verb):
    with pytest.raises(ct.StatisticError, match=f"{verb.__name__} does not take a pair tally"):
        verb(ct.PairTally.of(*problem(3, 50)))


# --- comparisons -------------------------------------------------------------------------------


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(
    ("shape", "apart", "tilt"),
    [((0.5, 0.8), 0.05, 0.7), ((1, 1), 0.0, 1.0), ((0.01, 5), 0.0, 0.7), ((0.3, 0.6), 1e-4, 1.0)],
)
def test_comparisons_are_those_of_rows(weighted, shape, apart, tilt):
    p, q, y = problem(5, 400, shape, apart, tilt)
    facts = {"weights": np.random.default_rng(1).choice([1.0, 1.7, 5.0], 400)} if weighted else {}
    for statistic in (ct.DebiasedL2(), ct.ECE(ct.UniformBins(32))):
        asked = {"n_resamples": 99, "rng": 1, "names": ("new", "old")}
        rows = ct.compare(p, q, y, statistic, **asked, **facts)
        found = ct.compare(ct.PairTally.of(p, q, y, **facts), statistic=statistic, **asked)
        alike(found, rows, 1e-5)
        assert found.effective_n == pytest.approx(rows.effective_n)
        for own, of_rows in zip(found.scores, rows.scores, strict=True):
            exact = (of_rows.mean_a, of_rows.mean_b)
            assert (own.mean_a, own.mean_b) == pytest.approx(exact, rel=1e-9)
            for name in ("difference", "low", "high", "pvalue"):
                value = getattr(of_rows, name)
                close = None if value is None else pytest.approx(value, rel=1e-3, abs=1e-7)
                assert getattr(own, name) == close


def test_rounding_goes_with_a_few_predictions_only():
    """Of 97 different predictions, each in a cell of its own, all is as from the rows."""
    p, q, y = problem(6)
    p, q = (np.rint(x * 97) / 97 for x in (p, q))
    alike(ct.compare(ct.PairTally.of(p, q, y)), ct.compare(p, q, y, rng=1), 1e-9)


@pytest.mark.parametrize("apart", [1e-3, 1e-5, 1e-8])
def test_what_lies_within_cells_is_not_lost(apart):
    """Of nearly the same, miscalibrated models it is all of the variance."""
    rng = np.random.default_rng(4)
    t = rng.beta(0.5, 0.5, 3000)
    y = (rng.random(3000) < t).astype(int)
    p = np.clip(t + 0.3 * (t - 0.5), 0.001, 0.999)
    q = np.clip(p + apart * rng.normal(size=3000), 0, 1)
    rows, found = ct.compare(p, q, y, rng=1), ct.compare(ct.PairTally.of(p, q, y), rng=1)
    assert found.scores[0].high - found.scores[0].low == pytest.approx(
        rows.scores[0].high - rows.scores[0].low, rel=1e-3
    )
    alike(found, rows, 1e-4)


def test_a_model_beside_itself():
    p, _, y = problem(7)
    found = ct.compare(ct.PairTally.of(p, p, y))
    assert (found.difference, found.pvalue, found.low, found.high) == (0.0, 1.0, 0.0, 0.0)


@pytest.mark.parametrize("lens", [ct.TopK(1), ct.OneVsRest(2), ct.Partition([[0, 1], [2, 3]])])
def test_each_model_has_its_own_event(lens):
    rng = np.random.default_rng(8)
    z = rng.normal(size=(900, 4)) * 2
    y = np.array([rng.choice(4, p=row) for row in np.exp(z) / np.exp(z).sum(1, keepdims=True)])
    models = [ct.Predictions.of(s * z + e * rng.normal(size=z.shape), y, from_logits=True)
              for s, e in ((1, 0), (1.6, 0.7))]  # fmt: skip
    pairs = ct.PairTally.of(*models, lens=lens)
    rows = ct.compare(*models, lens=lens, rng=1)
    alike(ct.compare(pairs, rng=1), rows, 1e-5)
    assert ct.compare(pairs, rng=1).scores == ()  # of one event only, not of the whole prediction
    assert (lens == ct.TopK(1)) == np.isin(pairs.key[:, 3], (1, 2)).any()


@pytest.mark.slow
@pytest.mark.parametrize("n", [300, 5000])
@pytest.mark.parametrize("shape", [(1, 1), (0.05, 2)])
def test_equal_errors_are_rejected_no_more_often_than_chance(n, shape):
    """Both calibrated: rejections in 300 data sets, beside binomial limits at 1e-4."""
    rejected = 0
    for j in range(300):
        rng = np.random.default_rng([j, n])
        t = rng.beta(*shape, n)
        pair = SimpleNamespace(p=t, q=_coarser(t))
        y = (rng.random(n) < t).astype(int)
        pairs = ct.PairTally.of(pair.p, pair.q, y)
        rejected += ct.compare(pairs, n_resamples=19, rng=1).pvalue <= 0.05
    assert rejected <= 31


def _coarser(t):
    """The mean prediction of the fifth in which a row lies: calibrated, too, and says less."""
    fifth = np.searchsorted(np.quantile(t, [0.2, 0.4, 0.6, 0.8]), t)
    return (np.bincount(fifth, t) / np.bincount(fifth))[fifth]
