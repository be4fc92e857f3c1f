"""What must hold for every statistic, lens, partition and scheme there is."""

from dataclasses import replace

import numpy as np
import pytest
from conftest import LENSES, PARTITIONS, SCHEMES, STATISTICS, cells_of, drawn

import caltest as ct
from caltest.statistics import Flips
from caltest.statistics.prepared import prepare

TABLE = pytest.mark.parametrize("row", STATISTICS, ids=str)
TWO = [row for row in STATISTICS if row.two_classes]


def problem(row, n=120, seed=0, style="smooth"):
    return drawn(n, 2 if row.two_classes else 3, seed, style)


def close(value):
    return pytest.approx(value, rel=1e-9, abs=1e-12)


@TABLE
def test_signs_and_inflation_move_residuals(row):
    data = problem(row)
    prepared = prepare(row.statistic, data)
    flips = Flips(np.ones((2, data.n)))
    if not prepared.inflatable:
        with pytest.raises(ct.StatisticError, match="residuals"):
            prepared.values(flips)
        with pytest.raises(ct.StatisticError, match="inflated"):
            prepared.values(data.labels[None], 1.5)
        return
    value, both = prepared(data.labels), prepared.values(flips)
    np.testing.assert_allclose(both, value, rtol=1e-8, atol=1e-12)
    small = prepared.values(Flips(np.full((2, data.n), 0.5)))
    if not isinstance(row.statistic, ct.SmoothECE):  # its width follows the residuals
        np.testing.assert_allclose(prepared.values(flips, 0.25), small, rtol=1e-8, atol=1e-12)
    inflated = prepared.values(data.labels[None], 2.0)
    np.testing.assert_allclose(prepared.values(flips, 2.0)[:1], inflated, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("row", TWO, ids=str)
def test_one_column_is_the_probability_of_label_1(row):
    data = drawn(150, 2, 3)
    p, y = data.probs[:, 0], 1 - data.labels
    value = row.statistic(p, y)
    assert value == row.statistic(np.column_stack([1 - p, p]), y)
    assert value == close(row.statistic(ct.OneVsRest(1)(ct.Predictions.of(p, y))))
    assert ct.calibration_test(p, y, row.statistic, n_resamples=9, rng=0).estimate == close(value)


@TABLE
def test_statistics_refuse_what_verbs_refuse(row):
    for probs, message in (([0.2, np.nan], "row 1 is nan"), ([0.2], "1 rows but labels has 2")):
        with pytest.raises(ct.InvalidPredictionsError, match=message):
            row.statistic(probs, [0, 1])


@pytest.mark.slow
@pytest.mark.parametrize("scheme", SCHEMES, ids=repr)
@TABLE
def test_every_statistic_runs_on_every_scheme(row, scheme):
    data = problem(row, 150, seed=5)
    law = ct.replicate(data, row.statistic, scheme, n_resamples=40, rng=3)
    again = ct.replicate(data, row.statistic, scheme, n_resamples=40, rng=3, workers=2)
    np.testing.assert_array_equal(np.asarray(law), np.asarray(again))
    longer = ct.replicate(data, row.statistic, scheme, n_resamples=70, rng=3)
    np.testing.assert_array_equal(np.asarray(law), np.asarray(longer)[:40])


@TABLE
def test_the_null_mean_in_closed_form_is_the_mean(row):
    data = problem(row, 150, seed=8)
    prepared = prepare(row.statistic, data)
    if prepared.null_mean is None:
        return
    law = ct.replicate(data, row.statistic, ct.RedrawLabels(), n_resamples=4000, rng=2)
    assert law.mean() == pytest.approx(prepared.null_mean, abs=4.5 * law.std() / 4000**0.5)


@pytest.mark.parametrize("lens", LENSES, ids=repr)
def test_facts_survive_every_lens(lens):
    probs, labels = drawn(40, 4, 1).probs, drawn(40, 4, 1).labels
    facts = {
        "weights": np.linspace(0.5, 2, 40),
        "clusters": np.arange(40) // 4,
        "by": np.where(np.arange(40) < 10, "a", "b"),
        "ids": [f"row {i}" for i in range(40)],
    }
    data = ct.Predictions.of(probs, labels, **facts)
    induced = lens(data)
    assert induced.induced
    for name in facts:
        np.testing.assert_array_equal(getattr(induced, name), getattr(data, name))
    rows = np.array([7, 3, 30])
    some = lens(data.take(rows))
    for name in facts:
        np.testing.assert_array_equal(getattr(some, name), getattr(data, name)[rows])
    np.testing.assert_array_equal(some.probs, induced.probs[rows])


@pytest.mark.parametrize("lens", LENSES, ids=repr)
def test_lenses_relabel_many_vectors_at_once(lens):
    data = ct.Predictions.of(drawn(30, 4, 2).probs, drawn(30, 4, 2).labels)
    labels = np.random.default_rng(0).integers(4, size=(5, 30))
    many = lens.relabelling(data)(labels)
    for vector, relabelled in zip(labels, many, strict=True):
        np.testing.assert_array_equal(lens(replace(data, labels=vector)).labels, relabelled)
    np.testing.assert_array_equal(ct.Lens.relabelling(lens, data)(labels), many)


@pytest.mark.parametrize("bins", PARTITIONS, ids=repr)
def test_cells_hold_every_row_once(bins):
    data = drawn(300, 2, 4, "ties")
    cells = cells_of(bins, data.probs)
    assert (sorted(cells.order.tolist()), cells.counts.sum()) == (list(range(300)), 300)
    assert cells.counts.min() >= 1
    number = np.unique(np.asarray(bins(data.probs)), return_inverse=True)[1]
    np.testing.assert_array_equal(cells.of_unit, number)
    ones = np.ones((2, 300, 3))
    np.testing.assert_array_equal(
        cells.sum(ones, axis=1), np.repeat(cells.counts, 3).reshape(1, -1, 3).repeat(2, 0)
    )


@pytest.mark.parametrize("scheme", SCHEMES, ids=repr)
def test_schemes_draw_data_sets_of_the_same_size(scheme):
    data = drawn(50, 3, 9)
    if isinstance(scheme, ct.LabelScheme):
        labels = scheme.drawer(data)((1, 2), 0, 4000)
        assert labels.shape == (4000, 50)
        frequency = np.stack([(labels == k).mean(axis=0) for k in range(3)], axis=1)
        np.testing.assert_allclose(frequency, data.probs, atol=5 * 0.5 / 4000**0.5)
    else:
        sample = scheme.sampler(data)(np.random.default_rng(0))
        assert (sample.n, sample.n_classes, sample.induced) == (50, 3, True)


class Plain(ct.LabelScheme):
    """A scheme of somebody else: all labels the likeliest class."""

    def drawer(self, data):
        top = data.probs.argmax(axis=1)
        return lambda seed, first, count, out=None: np.tile(top, (count, 1))


class Halves(ct.RowScheme):
    """A scheme of somebody else: half of the rows."""

    def sampler(self, data):
        return lambda rng: data.take(rng.permutation(data.n)[: data.n // 2])


@TABLE
def test_a_new_scheme_needs_nothing_of_a_statistic(row):
    data = problem(row, 80, seed=11)
    law = ct.replicate(data, row.statistic, Plain(), n_resamples=3, rng=0)
    top = replace(data, labels=data.probs.argmax(axis=1))
    np.testing.assert_allclose(np.asarray(law), row.statistic(top), rtol=1e-9, atol=1e-12)
    assert len(ct.replicate(data, row.statistic, Halves(), n_resamples=3, rng=0)) == 3


OF_AN_EVENT = [s for s in STATISTICS if s.two_classes and s.statistic != ct.VariationalError()]


@pytest.mark.parametrize("row", OF_AN_EVENT, ids=str)
def test_more_classes_are_refused(row):
    with pytest.raises(ct.StatisticError, match=r"for two classes, but there are 3|two-class lens"):
        row.statistic(np.full((30, 3), 1 / 3), np.arange(30) % 2)
