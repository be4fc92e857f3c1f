"""Tallies of several questions: one value, looked at through a lens."""

import json

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
    classes = map(ct.OneVsRest, range(10))
    assert tallies.lenses == (ct.TopK(1), ct.TopK(3), *classes, ct.Canonical())
    assert tallies.members[-1] == ct.VectorTally.of(digits)
    assert tallies.members[0] == ct.Tally.of(digits, lens=ct.TopK(1))
    assert tallies.through(ct.OneVsRest(4)) == ct.Tally.of(digits, lens=ct.OneVsRest(4), grid=480)
    assert tallies.through(None).lens == ct.TopK(1)
    assert (tallies.n, tallies.n_classes, tallies.weights) == (900, 10, None)


def test_same_for_any_parts_and_order(digits, tallies):
    part = np.random.default_rng(1).integers(0, 5, digits.n)
    cells = tallies.cells
    assert list(cells) == [ct.TopK(3), ct.Canonical()]
    pieces = [ct.Tallies.of(digits.take(part == j), cells=cells) for j in (3, 0, 4, 1, 2)]
    assert sum(pieces) == tallies
    assert sum(pieces[1:]) != tallies


def test_stored_and_read_again(tallies):
    assert ct.Tallies.from_json(tallies.to_json()) == tallies
    content = json.loads(tallies.to_json())
    with pytest.raises(ct.InvalidPredictionsError, match="form 9"):
        ct.Tallies.from_json(json.dumps(content | {"caltest tallies": 9}))
    for text in ("", "[]", "{}", "3", json.dumps(content | {"members": []})):
        with pytest.raises(ct.InvalidPredictionsError, match="no tallies"):
            ct.Tallies.from_json(text)


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
    curve = ct.reliability_curve(tallies, lens=ct.OneVsRest(2))
    assert curve.lens == "OneVsRest(2)"
    assert ct.equivalence_test(tallies, tolerance=0.5).equivalent


def test_classes_by_name():
    data = ct.Predictions.of([[0.2, 0.5, 0.3], [0.6, 0.3, 0.1]], [1, 0], classes=["a", "b", "c"])
    tallies = ct.Tallies.of(data)
    assert tallies.through(ct.OneVsRest("b")).lens == ct.OneVsRest(1)
    with pytest.raises(ct.StatisticError, match="named twice"):
        ct.Tallies.of(data, lenses=[ct.OneVsRest("b"), ct.OneVsRest(1)])


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


def test_several_lenses_are_adjusted_by_holm(digits, tallies):
    pairs = [(ct.ECE(), ct.TopK(1)), (ct.ECE(), ct.OneVsRest(2)), (ct.CoxScore(), ct.TopK(1))]
    found = ct.joint_test(tallies, pairs=pairs, n_resamples=199, rng=1)
    alone = [
        ct.calibration_test(tallies, None, s, lens=lens, n_resamples=199, rng=1).pvalue
        for s, lens in pairs
    ]
    assert [test.pvalue for test in found.tests] == alone
    assert "Holm" in str(found)
    same = ct.joint_test(tallies, pairs=pairs[::2], n_resamples=199, rng=1)
    assert "max-T" in str(same)


def test_refusals_name_what_there_is(digits, tallies):
    with pytest.raises(ct.StatisticError, match=r"through TopK\(2\), but through TopK\(1\)"):
        ct.calibration_test(tallies, lens=ct.TopK(2))
    with pytest.raises(ct.StatisticError, match="and 8 more"):
        ct.confidence_interval(tallies, lens=lambda data: data)
    with pytest.raises(ct.StatisticError, match="its own labels"):
        ct.calibration_test(tallies, digits.labels)
    with pytest.raises(ct.StatisticError, match="needs the rows"):
        ct.reliability_fit(tallies)
    with pytest.raises(ct.StatisticError, match="different lenses"):
        tallies + ct.Tallies.of(digits, lenses=[ct.TopK(1)])
    with pytest.raises(ct.StatisticError, match="different grids"):
        tallies + ct.Tallies.of(digits, grid=960)
    with pytest.raises(ct.StatisticError, match=r"cells=first\.cells"):
        tallies + ct.Tallies.of(digits.take(slice(0, 500)))
    for verb in (ct.confidence_interval, ct.reliability_curve, ct.equivalence_test):
        room = {"tolerance": 0.1} if verb is ct.equivalence_test else {}
        with pytest.raises(ct.StatisticError, match="needs the rows for whole vectors"):
            verb(tallies, lens=ct.Canonical(), **room)
    with pytest.raises(ct.StatisticError, match="list of lenses is empty"):
        ct.Tallies.of(digits, lenses=[])
    with pytest.raises(ct.StatisticError, match="differ in their number"):
        ct.Tallies((tallies.members[0], ct.Tally.of(digits.take([0, 1]), lens=ct.OneVsRest(1))))
    with pytest.raises(TypeError):
        tallies + tallies.members[0]
