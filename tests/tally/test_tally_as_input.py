"""What users do with tallies that cannot be right: each is refused in words, or answered."""

import numpy as np
import pytest

import caltest as ct

TWO = ct.examples.GaussianMixture(0, -2.2).sample(600, rng=1)
OTHER = ct.examples.GaussianMixture(0, -2.6).sample(600, rng=1)
DIGITS = ct.examples.digits("overfit").take(slice(0, 300))
KINDS = {
    "Tally": ct.Tally.of(TWO),
    "Tallies": ct.Tallies.of(TWO),
}


def test_scan_says_that_a_tally_is_no_file():
    with pytest.raises(ct.InvalidPredictionsError, match="paths is a Tally, not the names of"):
        ct.scan(KINDS["Tally"])


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"paths": []}, "paths is empty"),
        ({"paths": [None]}, "not the names of files"),
        ({"lens": 3}, "lens is 3: give a lens"),
        ({"grid": 0}, "grid must be a whole number"),
    ],
)
def test_scan_refuses_in_words(words_file, given, words):
    with pytest.raises((ct.StatisticError, ct.InvalidPredictionsError), match=words):
        ct.scan(**{"paths": words_file, "probs": "p", "pos_label": "yes"} | given)


def test_tallies_of_two_classes_do_what_their_tally_does():
    several, one = KINDS["Tallies"], KINDS["Tally"]
    assert str(ct.Monitor().update(several)) == str(ct.Monitor().update(one))
    other = ct.Tallies.of(OTHER)
    options = {"margin": 0.1, "paired": False}
    found = ct.gate(several, against=other, **options)
    assert found.checks == ct.gate(one, against=ct.Tally.of(OTHER), **options).checks
    truth = {"alternative": ct.planning.Slope(0.8), "n_datasets": 100, "rng": 1}
    assert ct.plan(several, **truth).n == ct.plan(one, **truth).n


def test_an_audit_of_a_tally_says_once_where_its_numbers_come_from():
    text = str(ct.audit(KINDS["Tally"], n_resamples=99))
    assert text.count("from sums over micro-cells") == 1
    assert (
        "Note: Kuiper sees nothing within a micro-cell. Note: MultiScale has the scales 2" in text
    )
    test = ct.calibration_test(KINDS["Tally"], statistic=ct.Kuiper(), n_resamples=99)
    assert test.notes == (
        "from sums over micro-cells (Tally, grid 4800)",
        "Kuiper sees nothing within a micro-cell",
    )


def test_an_audit_of_many_classes_says_which_sums_are_of_which_lens():
    found = ct.audit(ct.Tallies.of(DIGITS), n_resamples=199)
    whole, top, *others = found.notes
    assert "renormalised" in whole
    assert top == "TopK(1): from sums over micro-cells (Tally, grid 4800)"
    assert [note.split(": from sums over ")[0] for note in others] == ["OneVsRest(0…9)"]


def test_a_monitor_that_has_seen_one_tally_shows_a_point():
    picture = ct.Monitor().update(KINDS["Tally"]).plot()
    assert picture.artists["evidence"].get_marker() == "o"


@pytest.fixture
def words_file(tmp_path):
    path, names = tmp_path / "part.csv", np.array(["no", "yes"])
    pairs = zip(TWO.probs[:, 1], names[TWO.labels], strict=True)
    lines = [f"{p:.3f},{1 - p:.3f},{y}" for p, y in pairs]
    path.write_text("\n".join(["p,q,label", *lines]))
    return path


@pytest.mark.parametrize("other", [{"pos_label": "no"}, {"probs": "q"}, {"drop_missing": True}])
def test_a_state_is_of_the_columns_and_labels_that_were_asked(words_file, tmp_path, other):
    asked = {"probs": "p", "label": "label", "pos_label": "yes"}
    found = ct.scan(words_file, **asked, resume=tmp_path / "state")
    assert ct.scan(words_file, **asked, resume=tmp_path / "state") == found
    (name,) = other
    with pytest.raises(ct.StatisticError, match=f"was written with {name}=.*, not .*: give the"):
        ct.scan(words_file, **asked | other, resume=tmp_path / "state")


def test_folders_and_patterns_that_match_nothing(tmp_path, refused):
    refused("name its files, such as", "audit", tmp_path)
    refused("no file is like", "audit", tmp_path / "part-*.parquet")
