"""Guards of numbers in percent that are all below 1, and of rows of several models."""

from dataclasses import replace

import numpy as np

from caltest.data.questions import Column, Rows
from caltest.data.spare_columns import percent_below_one, questions, several_models

RNG = np.random.default_rng(3)
SAID = {"probs": "risk", "label": "bad"}


def rows_of(p, y, **columns):
    unused = tuple(Column.of(name, np.asarray(values)) for name, values in columns.items())
    return Rows(p, y, unused=unused, said=SAID)


def test_percents_below_one():
    p = RNG.uniform(0.1, 0.9, 5000)
    rows = rows_of(p, (RNG.random(5000) < p / 100).astype(int))
    question = percent_below_one(rows)
    assert question.asks
    assert question.readings[0].options == {"probs": "risk / 100"}
    assert question in questions(rows)


def test_rare_events_and_bad_models_are_not_percents():
    for _ in range(200):
        p = RNG.beta(0.2, 8, 400)
        assert percent_below_one(rows_of(p, (RNG.random(400) < p).astype(int))) is None
        assert percent_below_one(rows_of(p, (RNG.random(400) < p / 4).astype(int))) is None
    assert percent_below_one(rows_of(np.full(15, 0.9), np.zeros(15, dtype=int))) is None


def two_models(n=50):
    p, y = RNG.uniform(0.2, 0.9, 2 * n), RNG.integers(0, 2, 2 * n)
    questions_asked, models = [f"q{i % n}" for i in range(2 * n)], ["A"] * n + ["B"] * n
    return rows_of(p, y, question=questions_asked, model=models)


def test_rows_of_several_models():
    question = several_models(two_models())
    assert [set(r.options) for r in question.readings] == [{"where"}, {"by", "clusters"}]
    assert question.readings[0].options["where"] == "model = 'A'"


def test_models_by_themselves_are_no_question():
    rows = two_models()
    assert several_models(replace(rows, by=rows.unused[1].values)) is None
    assert several_models(replace(rows, said=SAID | {"where": "model = 'A'"})) is None
    cars = rows_of(rows.probs, rows.labels, car=[str(i) for i in range(100)], model=["A", "B"] * 50)
    assert several_models(cars) is None
