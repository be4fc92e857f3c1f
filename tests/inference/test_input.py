"""What each test takes of rows: the table, and the refusals that follow from it."""

import numpy as np
import pytest

import caltest as ct
from caltest.errors import UnsupportedFactError
from caltest.inference._input import TAKES, RowFact, Tallied, admitted

RNG = np.random.default_rng(5)
P = RNG.random(200)
Y = (RNG.random(200) < P).astype(int)
TIME = RNG.exponential(5.0, 200)

#: Tests of rows that ask for more than a tally first.
OTHERS = ("compare_models", "ComparisonMonitor", "promise", "decision_curve")


#: Rows that have one fact, by the fact.
WITH = {
    RowFact.WEIGHTS: lambda: ct.Predictions.of(P, Y, weights=1.0 + RNG.random(200)),
    RowFact.CLUSTERS: lambda: ct.Predictions.of(P, Y, clusters=np.arange(200) // 4),
    RowFact.CROSSED: lambda: ct.Predictions.of(
        P, Y, clusters={"reader": np.arange(200) % 20, "patient": np.arange(200) // 5}
    ),
    RowFact.SUBGROUPS: lambda: ct.Predictions.of(P, Y, by=[*"ab"] * 100),
    RowFact.FOLDS: lambda: ct.Predictions.of(P, Y, folds=[*range(5)] * 40),
    RowFact.FEATURES: lambda: ct.Predictions.of(P, Y, features={"age": TIME}),
    RowFact.HORIZON: lambda: ct.Predictions.of(P, Y, horizon=2),
    RowFact.FOLLOWUP: lambda: ct.Predictions.of(P, ct.Followup(TIME, Y, horizon=4.0)),
    RowFact.LABEL_SETS: lambda: ct.Predictions.of_labels(
        np.column_stack([P, P]), np.column_stack([Y, Y])
    ),
}


@pytest.mark.parametrize("fact", RowFact)
def test_a_fact_is_seen_in_the_rows_that_have_it(fact):
    assert fact.of(WITH[fact]()) is not None
    assert fact.of(ct.Predictions.of(P, Y)) is None


@pytest.mark.parametrize("verb", TAKES)
@pytest.mark.filterwarnings("ignore")
def test_what_the_table_lacks_is_refused_and_the_rest_admitted(verb):
    takes = TAKES[verb].facts
    for fact, rows in WITH.items():
        parts = {RowFact.CROSSED: {RowFact.CLUSTERS}, RowFact.LABEL_SETS: {*RowFact}}
        if fact in takes and (parts.get(fact, set()) & {RowFact.CLUSTERS}) <= takes:
            admitted(verb, rows())
        elif fact not in takes:
            with pytest.raises(UnsupportedFactError, match=f"{verb.split('(')[0]}.* does not take"):
                admitted(verb, rows())


@pytest.mark.parametrize("verb", [v for v in TAKES if v.isidentifier() and hasattr(ct, v)])
def test_a_tally_is_refused_by_what_the_table_says_needs_rows(verb):
    if TAKES[verb].tally is Tallied.NONE and verb not in OTHERS:
        tally = ct.Tally.of(P, Y)
        call = (tally, tally) if verb == "reliability_difference" else (tally,)
        with pytest.raises(ct.StatisticError, match="needs the rows, and a tally has none"):
            getattr(ct, verb)(*call)
