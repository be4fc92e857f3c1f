"""Votes in files and tables: a row for each vote with its item, or columns of counts."""

import numpy as np
import polars as pl
import pytest

import caltest as ct
from caltest.errors import DoubtfulInputError, InvalidPredictionsError, UnsupportedFactError
from caltest.read.files import read_predictions

NAMES = ("cat", "dog", "fox")
PROBS = [f"p_{name}" for name in NAMES]


@pytest.fixture(scope="module")
def items():
    rng = np.random.default_rng(7)
    probs = rng.dirichlet([1.0, 1.0, 1.0], 60)
    size = rng.integers(0, 6, 60)
    return probs, rng.multinomial(size, probs)


@pytest.fixture(scope="module")
def wide(items):
    """A row an item, with the votes in another order than the probabilities."""
    probs, counts = items
    columns = dict(zip(PROBS, probs.T, strict=True))
    columns |= {f"votes_{NAMES[k]}": counts[:, k] for k in (2, 0, 1)}
    return pl.DataFrame(columns | {"site": np.arange(60) // 6})


@pytest.fixture(scope="module")
def long(items):
    """A row a vote."""
    probs, counts = items
    item, label = np.nonzero(counts)
    times = counts[item, label]
    item, label = np.repeat(item, times), np.repeat(label, times)
    columns = dict(zip(PROBS, probs[item].T, strict=True))
    return pl.DataFrame(columns | {"label": [NAMES[k] for k in label], "text": item})


def test_columns_of_votes_are_of_votes(wide, items):
    probs, counts = items
    data = read_predictions(wide, PROBS, votes="votes_*")
    direct = ct.Predictions.of_votes(probs, counts)
    np.testing.assert_array_equal(data.labels, direct.labels)
    np.testing.assert_allclose(data.probs, direct.probs, atol=1e-15)
    np.testing.assert_array_equal(data.items, direct.items)
    assert data.classes == NAMES
    lacking = int((counts.sum(axis=1) == 0).sum())
    assert f"left out {lacking} items without a vote" in data.notes
    statistic = ct.IndividualError()
    assert statistic(data) == pytest.approx(statistic(direct), abs=1e-14)


def test_long_rows_with_items_are_the_same_items(wide, long):
    votes = read_predictions(wide, PROBS, votes="votes_*")
    rows = read_predictions(long, PROBS, items="text")
    assert ct.IndividualError()(rows) == pytest.approx(ct.IndividualError()(votes), abs=1e-14)
    assert "items from text" in rows.notes[0]


def test_every_way_in_takes_items_and_votes(long, wide, tmp_path):
    wide.write_csv(tmp_path / "wide.csv")
    long.write_parquet(tmp_path / "long.parquet")
    runs = {"n_resamples": 99, "rng": 0}
    found = {
        ct.individual_error(read_predictions(tmp_path / "wide.csv", votes="votes_*"), **runs),
        ct.individual_error(
            read_predictions(tmp_path / "long.parquet", label="label", items="text"), **runs
        ),
        ct.individual_error(wide, votes="votes_*", **runs),
        ct.individual_error(long, "label", items="text", **runs),
    }
    assert len({round(one.estimate, 12) for one in found}) == 1


def test_facts_of_items_are_facts_of_their_votes(wide):
    data = read_predictions(wide, PROBS, votes="votes_*", clusters="site", by="site")
    np.testing.assert_array_equal(data.clusters, np.asarray(wide["site"])[data.places])
    assert data.items_in_clusters


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"votes": ["votes_cat", "votes_dog"]}, "each of the 3 classes, but 2 columns"),
        ({"votes": ["votes_cat", "votes_dog", "site"]}, "do not fit the classes"),
        ({"votes": "votes_*", "label": "site"}, "in the place of the label"),
        ({"votes": "votes_*", "items": "site"}, "in the place of the items"),
        ({"votes": "votes_*", "ids": "site"}, "votes take no ids yet"),
        ({"votes": "votes_cat / 2, votes_dog, votes_fox"}, r"round\(share \* 5\)"),
    ],
)
def test_votes_that_are_refused(wide, options, message):
    with pytest.raises(InvalidPredictionsError, match=message):
        read_predictions(wide, PROBS, **options)


def test_two_columns_whose_names_say_another_order_are_asked_about():
    table = {"p": [0.3, 0.8, 0.5], "yes": [1, 3, 2], "no": [3, 1, 2]}
    with pytest.raises(DoubtfulInputError, match="yes comes first") as caught:
        read_predictions(table, "p", votes="yes, no")
    (reading,) = caught.value.readings
    data = read_predictions(table, "p", **reading.options)
    assert data.labels.sum() == 6


def test_items_with_different_predictions_are_named_by_the_rows_of_the_file(long, tmp_path):
    long.with_columns(one=pl.lit(1)).write_csv(tmp_path / "long.csv")
    with pytest.raises(InvalidPredictionsError, match=r"row 1 and row .* different predictions"):
        read_predictions(tmp_path / "long.csv", label="label", items="one")


def test_votes_of_arrays_have_a_sentence():
    with pytest.raises(InvalidPredictionsError, match="of_votes"):
        ct.calibration_test([0.5, 0.5], [1, 0], votes="a, b")
    with pytest.raises(InvalidPredictionsError, match=r"soft labels.*n_votes="):
        ct.calibration_test([[0.5, 0.5], [0.2, 0.8]], [[0.4, 0.6], [0.2, 0.8]])


def test_a_test_without_clusters_refuses_items_by_name(long):
    with pytest.raises(UnsupportedFactError, match="several outcomes of one prediction"):
        ct.reliability_fit(long, "label", fit="band", items="text")


def test_majority_labels_beside_their_votes_are_noted(wide, items):
    _, counts = items
    some = counts.sum(axis=1) > 0
    majority = [NAMES[k] for k in counts.argmax(axis=1)]
    table = wide.with_columns(label=pl.Series(majority)).filter(pl.Series(some))
    data = read_predictions(table, PROBS)
    assert any("majority of votes_cat, votes_dog, votes_fox" in note for note in data.notes)
    other = table.with_columns(label=pl.col("label").shuffle(seed=1))
    assert not any("majority" in note for note in read_predictions(other, PROBS).notes)


PREDICTED, SEEN = np.random.default_rng(3).random((2, 40)).round(4)
SHARES = pl.DataFrame(
    {"district": np.arange(40), "pred_A": PREDICTED, "pred_B": 1.0 - PREDICTED}
    | {"actual_A": SEEN, "actual_B": 1.0 - SEEN}
)


def test_shares_of_votes_are_suggested_with_their_number():
    with pytest.raises(InvalidPredictionsError) as refused:
        read_predictions(SHARES)
    options = dict(refused.value.readings[0].options)
    assert options["probs"] == "pred_A, pred_B"
    assert options["votes"] == "round(actual_A * NUMBER), round(actual_B * NUMBER)"


def test_two_models_without_an_outcome_are_no_shares():
    models = SHARES.rename({"actual_A": "second_A", "actual_B": "second_B"})
    with pytest.raises(InvalidPredictionsError) as refused:
        read_predictions(models)
    assert not any("votes" in dict(r.options) for r in refused.value.readings)


def test_items_are_renormalised_and_counted_as_items():
    probs = np.array([[0.5, 0.3, 0.2], [0.3335, 0.3333, 0.3333], [0.1, 0.2, 0.7]])
    counts = np.full((3, 3), 4)
    table = pl.DataFrame(
        dict(zip(PROBS, probs.T, strict=True))
        | dict(zip(["votes_cat", "votes_dog", "votes_fox"], counts.T, strict=True))
    )
    for data in (
        ct.Predictions.of_votes(probs, counts),
        read_predictions(table, PROBS, votes="votes_*"),
    ):
        assert data.n == 36
        assert any(note.startswith("1 row renormalised") for note in data.notes)
        assert not any("12 rows" in note for note in data.notes)
    probs[2] = 0.5
    with pytest.raises(InvalidPredictionsError, match="1 of 3 rows"):
        ct.Predictions.of_votes(probs, counts)


def test_goals_of_two_teams_are_no_votes_on_who_wins():
    rng = np.random.default_rng(0)
    home, away = rng.poisson(1.5, 80), rng.poisson(1.5, 80)
    table = {"p": rng.random(80).round(2), "y": (home > away).astype(int)}
    table |= {"home": home, "away": away}
    assert not any("majority" in note for note in read_predictions(table, as_is=True).notes)
    votes = {"yes_votes": home, "no_votes": away} | {k: table[k] for k in "py"}
    keep = home != away
    votes = {name: np.asarray(column)[keep] for name, column in votes.items()}
    noted = read_predictions(votes, as_is=True).notes
    assert any("majority of no_votes, yes_votes" in note for note in noted)
