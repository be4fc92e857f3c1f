"""Two models of pandas whose rows have labels: matched by index, or refused."""

from __future__ import annotations

import numpy as np
import pytest

import caltest as ct
from caltest.errors import InvalidPredictionsError

pandas = pytest.importorskip("pandas")

N = 300


@pytest.fixture
def models():
    rng = np.random.default_rng(5)
    p = rng.uniform(0.05, 0.95, N)
    y = (rng.random(N) < p).astype(int)
    index = [f"row {k}" for k in range(N)]
    a = pandas.Series(p, index, name="p")
    return a, pandas.Series(np.clip(p + 0.1, 0, 1), index), pandas.Series(y, index)


VERBS = {
    "compare": lambda a, b, y: ct.compare(a, b, y, n_resamples=99, rng=1),
    "compare_models": lambda a, b, y: ct.compare_models(
        {"A": a, "B": b}, y, n_resamples=99, rng=1
    ).pairs[0],
    "gate": lambda a, b, y: ct.gate(a, y, against=b, margin=0.1, n_resamples=99, rng=1),
    "reliability_difference": lambda a, b, y: ct.reliability_difference(a, b, y, bins=5),
    "monitor": lambda a, b, y: ct.ComparisonMonitor().update(a, b, y),
}


def shuffled(values):
    return values.sample(frac=1, random_state=3)


def numbers(result):
    fields = {k: v for k, v in vars(result).items() if isinstance(v, (float, np.ndarray))}
    assert fields
    return fields


def assert_same(one, other):
    for name, value in numbers(one).items():
        np.testing.assert_array_equal(value, getattr(other, name), err_msg=name)


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
def test_rows_in_another_order_are_matched_by_index_with_a_note(verb, models):
    a, b, y = models
    in_order = verb(a, b, y.to_numpy())
    matched = verb(a, shuffled(b), y.to_numpy())
    assert_same(in_order, matched)
    assert any("matched by their index" in note for note in matched.notes)
    assert not any("by their index" in note for note in in_order.notes)


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
def test_labels_with_an_index_are_matched_too(verb, models):
    a, b, y = models
    matched = verb(a, shuffled(b), shuffled(y)[::-1])
    assert_same(verb(a, b, y), matched)
    assert any("labels are in another order" in note for note in matched.notes)


@pytest.mark.parametrize("verb", VERBS.values(), ids=VERBS)
def test_indexes_of_other_labels_are_refused(verb, models):
    a, b, y = models
    b.index = [f"line {k}" for k in range(N)]
    with pytest.raises(InvalidPredictionsError, match="different indexes, first in row 0"):
        verb(a, b, y.to_numpy())


def test_indexes_that_repeat_a_label_in_another_order_are_refused(models):
    a, b, y = models
    a.index = b.index = [k // 2 for k in range(N)]
    with pytest.raises(InvalidPredictionsError, match="the same labels, each once"):
        ct.compare(a, shuffled(b), y.to_numpy())


def test_equal_indexes_that_repeat_labels_need_no_matching(models):
    a, b, y = models
    a.index = b.index = [k // 2 for k in range(N)]
    assert ct.compare(a, b, y.to_numpy(), n_resamples=9).n == N


def test_different_indexes_beside_an_array_are_refused(models):
    a, b, y = models
    three = {"A": a.to_numpy(), "B": b, "C": shuffled(b)}
    with pytest.raises(InvalidPredictionsError, match="beside an array"):
        ct.compare_models(three, y.to_numpy())


def test_frames_with_labels_are_matched_by_index(models):
    a, b, y = models
    frame_a, frame_b = (pandas.DataFrame({"p": p, "y": y}) for p in (a, b))
    result = ct.compare(frame_a, shuffled(frame_b), n_resamples=99, rng=1)
    assert_same(ct.compare(frame_a, frame_b, n_resamples=99, rng=1), result)


def test_a_column_of_ids_matches_rows_whatever_their_indexes(models):
    a, b, y = models
    frames = [pandas.DataFrame({"p": p, "y": y, "key": p.index}) for p in (a, b)]
    moved = shuffled(frames[1]).reset_index(drop=True)
    result = ct.compare(frames[0], moved, ids="key", n_resamples=99, rng=1)
    assert_same(ct.compare(*frames, ids="key", n_resamples=99, rng=1), result)
