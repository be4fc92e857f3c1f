"""Tallies of several questions: one value, looked at through a lens."""

import numpy as np
import pytest

import caltest as ct


@pytest.fixture(scope="module")
def digits():
    return ct.examples.digits("overfit")


@pytest.fixture(scope="module")
def tallies(digits):
    return ct.Tallies.of(digits)


def test_members_are_the_tallies_of_their_lenses(digits, tallies):
    assert tallies.lenses == (ct.TopK(1), *map(ct.OneVsRest, range(10)))
    assert tallies.members[0] == ct.Tally.of(digits, lens=ct.TopK(1))
    assert tallies.through(ct.OneVsRest(4)) == ct.Tally.of(digits, lens=ct.OneVsRest(4), grid=480)
    assert tallies.through(None).lens == ct.TopK(1)
    assert (tallies.n, tallies.n_classes, tallies.weights) == (900, 10, None)
    of = ct.OneVsRest
    for lenses, usual in (([of(3)], of(3)), ([of(3), of(4)], ct.TopK(1))):
        assert ct.Tallies.of(digits, lenses=lenses).lens == usual


def test_same_for_any_parts_and_order(digits, tallies):
    part = np.random.default_rng(1).integers(0, 5, digits.n)
    pieces = [ct.Tallies.of(digits.take(part == j)) for j in (3, 0, 4, 1, 2)]
    assert sum(pieces) == tallies
    one, other = sum(pieces).sample, sum(pieces[::-1]).sample
    for name in ("n", "rank", "probs", "labels"):
        np.testing.assert_array_equal(getattr(one, name), getattr(other, name))
    assert sum(pieces[1:]) != tallies


def test_stored_and_read_again(tallies):
    again = ct.Tallies.from_json(tallies.to_json())
    assert again == tallies
    np.testing.assert_array_equal(again.rows.probs, tallies.rows.probs)


def test_verbs_look_through_a_lens(digits, tallies):
    for lens in (None, ct.OneVsRest(7)):
        rows = ct.calibration_test(digits, lens=lens)
        found = ct.calibration_test(tallies, lens=lens)
        assert found.lens == rows.lens
        assert found.pvalue == pytest.approx(rows.pvalue, rel=0.05)
        rows = ct.confidence_interval(digits, lens=lens, rng=1)
        found = ct.confidence_interval(tallies, lens=lens, rng=1)
        assert (found.low, found.high) == pytest.approx((rows.low, rows.high), abs=1e-6)
    again = ct.compare(tallies, tallies, paired=False, lens=ct.OneVsRest(2))
    assert (again.difference, again.lens) == (0.0, "OneVsRest(2)")
    assert ct.equivalence_test(tallies, tolerance=0.5).equivalent


def test_two_classes_know_the_event_and_the_top():
    rng = np.random.default_rng(1)
    p = rng.random(400)
    y = (rng.random(400) < p).astype(int)
    tallies = ct.Tallies.of(p, y)
    assert tallies.lenses == (ct.OneVsRest(1),)
    assert tallies.through(ct.TopK(1)) == ct.Tally.of(p, y).top()
    pairs = [(ct.ECE(), None), (ct.Kuiper(), ct.TopK(1))]
    options = {"n_resamples": 99, "rng": 1}
    one, other = (ct.joint_test(t, pairs=pairs, **options) for t in (tallies, ct.Tally.of(p, y)))
    assert one.adjusted == other.adjusted
    assert one.adjust == other.adjust == "max-T"


@pytest.mark.parametrize("lens", [ct.Canonical(), ct.TopK(3), ct.OneVsRest(2), None])
@pytest.mark.parametrize(
    "statistic", [ct.ECE(ct.VarianceTree(60)), ct.SKCE(), ct.ScoreGap("spherical")]
)
def test_all_that_sums_leave_open_is_asked_of_the_rows(digits, tallies, lens, statistic):
    rows, found = (
        ct.calibration_test(data, None, statistic, lens=lens, n_resamples=99, rng=1)
        for data in (digits, tallies)
    )
    close = pytest.approx(rows.estimate, rel=1e-4)
    assert (found.estimate, found.lens, found.n) == (close, rows.lens, 900)
    assert found.pvalue == pytest.approx(rows.pvalue, abs=0.15)
    assert not any("sample" in note for note in found.notes)


def test_an_audit_asks_tallies_what_it_asks_rows(digits, tallies):
    rows, found = (ct.audit(data, n_resamples=499, rng=1) for data in (digits, tallies))
    assert [row.lens for row in found.rows] == [row.lens for row in rows.rows]
    for own, other in zip(found.rows, rows.rows, strict=True):
        assert own.test.estimate == pytest.approx(other.test.estimate, rel=1e-6)
    assert found.verdict == rows.verdict


def many_rows(n=120_000):
    rng = np.random.default_rng(1)
    probs = rng.dirichlet(np.ones(3), n)
    labels = (rng.random((n, 1)) > probs.cumsum(axis=1)).sum(axis=1)
    return probs, labels, 0.5 * probs + 1.0 / 6.0


def test_a_sample_is_uniform_and_says_its_size():
    probs, labels, _ = many_rows()
    tallies = ct.Tallies.of(probs, labels)
    assert tallies.rows.n == 50_000
    rows = np.isin(probs[:, 0], tallies.rows.probs[:, 0])
    assert rows.sum() == 50_000
    share = rows.reshape(60, 2000).mean(axis=1)  # of every stretch of rows alike
    assert abs(share - 5 / 12).max() < 0.05
    found = ct.calibration_test(tallies, None, ct.ECE(5), lens=ct.Canonical(), n_resamples=19)
    assert found.n == 50_000
    assert "a sample of 50000 of 120000 rows" in found.notes
    starts = range(0, 120_000, 40_000)
    both = sum(ct.Tallies.of(probs[a : a + 40_000], labels[a : a + 40_000]) for a in starts)
    assert (both, (both.sample.n, both.rows.n)) == (tallies, (120_000, 50_000))
    weighted = ct.Tallies.of(probs, labels, weights=np.arange(120_000) % 3)
    assert weighted.n == weighted.sample.n == 80_000
    assert weighted.rows.weights.min() > 0.0


@pytest.mark.slow
def test_two_models_on_the_same_rows_are_compared_by_the_sample():
    probs, labels, other = many_rows()
    a, b = ct.Tallies.of(probs, labels), ct.Tallies.of(other, labels)
    found = ct.compare(a, b, lens=ct.OneVsRest(1), rng=1)
    assert found.n == 50_000
    assert found.pvalue < 1e-6
    assert found.estimate_a < found.estimate_b
    few = slice(0, 3000)
    small = (ct.Tallies.of(p[few], labels[few]) for p in (probs, other))
    rows = ct.compare(probs[few], other[few], labels[few], rng=1)
    found = ct.compare(*small, rng=1)
    assert (found.difference, found.pvalue) == pytest.approx((rows.difference, rows.pvalue))
    for part in (few, slice(None, None, -1)):
        with pytest.raises(ct.StatisticError, match="not of the same observations"):
            ct.compare(a, ct.Tallies.of(other[part], labels[part]))
