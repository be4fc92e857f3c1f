"""Columns that say how rows ended: competing events beside the event, and kinds of it."""

import numpy as np
import pytest

from caltest.data import ends
from caltest.data.questions import Column, Rows


def follow_up(n=1000, seed=1):
    """Return risks by time 5, how long rows were followed, and codes: 1 event, 2 other end."""
    rng = np.random.default_rng(seed)
    p = rng.beta(1.2, 2.2, n)
    event = 5.0 * rng.exponential(size=n) / -np.log1p(-p)
    other, lost = rng.exponential(25.0, n), rng.uniform(2, 12, n)
    times = np.column_stack([lost, event, other])
    return p, times.min(axis=1), times.argmin(axis=1)


def rows_of(p, event, time, weights=None, **columns):
    unused = tuple(Column.of(name, np.asarray(cells)) for name, cells in columns.items())
    labels = (event & (time <= 5)).astype(int)
    said = {"probs": "p", "event": "died"}
    return Rows(p, labels, weights, unused=unused, said=said, followed=True)


@pytest.fixture(scope="module")
def seen():
    p, time, code = follow_up()
    return p, time, code, np.random.default_rng(9)


@pytest.mark.parametrize(
    ("cells", "sql"),
    [
        (lambda other: other * 1, "other"),
        (lambda other: other, "other"),
        (lambda other: np.where(other, "x", None), "coalesce(other = 'x', FALSE)"),
        (lambda other: np.where(other, 1.0, np.nan), "coalesce(other = 1, FALSE)"),
        (lambda other: np.where(other, "yes", "no"), "other = 'yes'"),
    ],
)
def test_a_column_that_is_true_without_the_event_and_early_is_asked_about(seen, cells, sql):
    p, time, code, _ = seen
    values = cells(code == 2)
    values = values.astype(object) if values.dtype.kind == "U" else values
    rows = rows_of(p, code == 1, time, other=values)
    question = ends.other_events(rows, code == 1, time)
    assert question.asks
    assert [reading.options for reading in question.readings] == [{"competing": sql}]


def test_features_and_flags_of_censoring_are_no_competing_events(seen):
    p, time, code, rng = seen
    event = code == 1
    columns = {
        "sex": rng.choice(["m", "w"], 1000), "stage": np.digitize(p, [0.2, 0.5]),
        "alive": ~event, "reached_the_end": (code == 0) & (time > 6), "died": event,
    }  # fmt: skip
    assert ends.other_events(rows_of(p, event, time, **columns), event, time) is None


def test_nothing_is_asked_where_a_competing_event_is_named(seen):
    p, time, code, _ = seen
    rows = rows_of(p, code == 1, time, other=(code == 2) * 1)
    rows.said["competing"] = "other"
    assert ends.other_events(rows, code == 1, time) is None


def test_kinds_of_the_event_are_asked_about_where_all_of_them_are_more_than_predicted(seen):
    p, time, code, _ = seen
    died = code > 0
    cause = np.array([None, "heart", "other"], dtype=object)[code]
    rows = rows_of(p, died, time, np.ones(1000), cause=cause)
    both = [
        {
            "event": "coalesce(cause = 'heart', FALSE)",
            "competing": "coalesce(cause = 'other', FALSE)",
        },
        {
            "event": "coalesce(cause = 'other', FALSE)",
            "competing": "coalesce(cause = 'heart', FALSE)",
        },
    ]
    question = ends.other_events(rows, died, time)
    assert sorted((r.options for r in question.readings), key=str) == both
    as_predicted = rows_of(np.full(1000, rows.labels.mean()), died, time, cause=cause)
    assert not ends.other_events(as_predicted, died, time).asks


def test_the_likeliest_event_is_the_one_whose_times_follow_the_predictions(seen):
    p, time, code, rng = seen
    columns = [
        Column.of("hospital", rng.choice(["A", "B"], 1000)),
        Column.of("stage", np.digitize(p, [0.2, 0.5])),
        Column.of("state", np.array(["alive", "dead", "dead otherwise"], dtype=object)[code]),
    ]
    ((event, others),) = ends.likely_ends(columns, time, p)
    assert event.sql == "state = 'dead'"
    assert sorted(end.sql for end in others) == ["state = 'dead otherwise'"]
    flags = [Column.of("dead", (code == 1) * 1), Column.of("other", (code == 2) * 1)]
    ((event, others),) = ends.likely_ends(flags, time, 1.0 - p)
    assert (event.sql, [end.sql for end in others]) == ("dead", ["other"])


def test_rows_that_are_called_censored_have_no_event_and_no_competing_one(seen):
    p, time, code, _ = seen
    names = np.array(["zensiert", "Rückfall", "Tod"])[code]
    ((end, others),) = ends.likely_ends([Column.of("status", names)], time, p)
    assert end.word == "Rückfall"
    assert [other.word for other in others] == ["Tod"]
    lost = np.array(["perdu de vue", "no", "no"])[code]
    event = code == 1
    assert ends.other_events(rows_of(p, event, time, how=lost), event, time) is None
