"""What users do with sums that cannot be right: refused in words that help, or answered."""

import json

import numpy as np
import pytest

import caltest as ct

STATISTIC, DATA = ct.StatisticError, ct.InvalidPredictionsError
TWO = ct.examples.GaussianMixture(0, -2.2).sample(600, rng=1)
DIGITS = ct.examples.digits("overfit").take(slice(0, 300))
NAMED = ct.Predictions.of([[0.2, 0.5, 0.3], [0.6, 0.3, 0.1]], [1, 0], classes=["a", "b", "c"])
P, Y = [0.2, 0.7, 0.1], [0, 1, 1]
TALLY, MANY, HUNDRED = ct.Tally.of(P, Y), ct.Tallies.of(DIGITS), ct.Tally.of(P, Y, grid=100)
WEIGHTED, TOP = ct.Tally.of(P, Y, weights=[1, 2, 1]), ct.Tally.of(P, Y, lens=ct.TopK(1))
EVEN, SUMS = ct.Tally.of([0.25] * 40, [0, 1] * 20), ct.Tallies(MANY.members)
CONTENT, CONTENTS = json.loads(TALLY.to_json()), json.loads(MANY.to_json())
PAIR = ct.Tally.of([0.1, 0.2, 0.1], [1, 0, 0]), ct.Tally.of([0.1, 0.2], [1, 0], grid=60)
UNPAIRED = {"paired": False}
#: Sums of this many rows would overflow.
HUGE = {"n": [2**33], "events": [0], "probability": [0.5 / 4800]}
MONITOR, TOPS = ct.Monitor().update(TALLY), ct.Monitor(lens=ct.TopK(1)).update(TOP)
THREE = ct.Tally.of(np.random.default_rng(0).dirichlet(np.ones(3), 100), np.arange(100) % 3)


def ask(data, statistic=None, **options):
    return ct.calibration_test(data, None, statistic or ct.ECE(), **options)


BINNINGS = ct.UniformBins(7), ct.EdgeBins([1 / 7]), ct.VarianceTree(1), lambda p: p
#: Error, call and words of it.
REFUSED = [
    # what a tally is made of
    *((DATA, lambda t=t: ct.Tally.from_json(t), "not a tally")
      for t in ("", "[]", "{}", '{"cells": {}}', "null", "3")),
    *((DATA, lambda c=c: ct.Tally.from_json(json.dumps(CONTENT | c)), "damaged")
      for c in ({"n": 4}, {"n": 6, "cells": {k: [*2 * v[:1], *2 * v[1:2], *2 * v[2:]]
                                             for k, v in CONTENT["cells"].items()}})),
    (DATA, lambda: ct.Tally.from_json(json.dumps(CONTENT | {"caltest tally": 8})), "form 8"),
    (DATA, lambda: ct.Tallies.from_json(json.dumps(CONTENTS | {"caltest tallies": 9})), "form 9"),
    *((DATA, lambda t=t: ct.Tallies.from_json(t), "no tallies") for t in ("", "[]", "{}", "3")),
    *((DATA, lambda c=c: ct.Tallies.from_json(json.dumps(CONTENTS | c)), "no tallies")
      for c in ({"members": []}, {"sample": 3})),
    (STATISTIC, lambda: ct.Tally.of(np.full(2000, 0.5), np.zeros(2000, int),
                                    weights=np.arange(1, 2001)), "2000 different weights"),
    (STATISTIC, lambda: ct.Tally.of(P, Y, clusters=[1, 1, 2]), "keeps no clusters"),
    (STATISTIC, lambda: ct.Tally.of(P, Y, by=["a", "b", "a"]), "keeps no by"),
    (STATISTIC, lambda: ct.Tally.of(DIGITS, lens=ct.Canonical()), "two-class question"),
    (STATISTIC, lambda: ct.Tally.of(P, Y, lens=lambda data: data), "cannot name"),
    (STATISTIC, lambda: ct.Tally.from_table(HUGE), "at most 8589934591 rows"),
    (STATISTIC, lambda: ct.Tallies.of(DIGITS, lenses=ct.TopK(1)), "give a list of lenses"),
    (STATISTIC, lambda: ct.Tallies.of(DIGITS, lenses=[]), "list of lenses is empty"),
    (STATISTIC, lambda: ct.Tallies.of(TWO, grid=0), "grid must be a whole number"),
    (STATISTIC, lambda: ct.Tallies.of(NAMED, lenses=[ct.OneVsRest("b"), ct.OneVsRest(1)]),
     "named twice"),
    (STATISTIC, lambda: ct.Tallies((MANY.members[0],
                                    ct.Tally.of(DIGITS.take([0, 1]), lens=ct.OneVsRest(1)))),
     "differ in their number"),
    # sums of different questions
    (STATISTIC, lambda: TALLY + HUNDRED, "different grids"),
    (STATISTIC, lambda: TALLY + TOP, "different lenses"),
    (STATISTIC, lambda: TALLY + ct.Tally.of(P, Y, classes=["a", "b"]), "different classes"),
    (STATISTIC, lambda: MANY + ct.Tallies.of(DIGITS, lenses=[ct.TopK(1)]), "different lenses"),
    (STATISTIC, lambda: MANY + ct.Tallies.of(DIGITS, grid=960), "different grids"),
    (TypeError, lambda: TALLY + 1, "unsupported"),
    (TypeError, lambda: MANY + MANY.members[0], "unsupported"),
    (STATISTIC, TOP.top, "event of two classes"),
    # tests
    *((STATISTIC, lambda b=b: ask(TALLY, ct.ECE(b)), "not made of the cells") for b in BINNINGS),
    *((STATISTIC, lambda s=s: ask(TALLY, s), "needs the rows")
      for s in (ct.SKCE(), ct.CORP(), ct.ICI(), lambda p, y: 0.5)),
    (STATISTIC, lambda: ask(EVEN, null=ct.ConsistencyResampling()), "draws rows"),
    (STATISTIC, lambda: ct.calibration_test(TALLY, [0, 1]), "its own labels"),
    (STATISTIC, lambda: ct.calibration_test(MANY, DIGITS.labels), "its own labels"),
    (STATISTIC, lambda: ask(TALLY, lens=ct.OneVsRest(0)), "tally the rows with that lens"),
    (STATISTIC, lambda: ask(ct.Tally.of([0.0, 0.5], [1, 1]), ct.LogScore()), "finite"),
    (STATISTIC, lambda: ask(SUMS, lens=ct.TopK(2)), r"through TopK\(2\), but through TopK\(1\)"),
    # other verbs
    (STATISTIC, lambda: ct.confidence_interval(SUMS, lens=lambda data: data), "and 6 more"),
    (STATISTIC, lambda: ct.reliability_fit(TALLY), "needs the rows"),
    (STATISTIC, lambda: ct.reliability_fit(TALLY), "from a tally comes fit='band'"),
    (STATISTIC, lambda: ct.reliability_fit(MANY), "needs the rows"),
    (STATISTIC, lambda: ct.audit(ct.Tally.of(DIGITS, lens=ct.OneVsRest(3))),
     "top class or the event"),
    (STATISTIC, lambda: ct.brier_decomposition(TALLY, bins=7), "not made of the cells"),
    (STATISTIC, lambda: ct.cox_recalibration(ct.Tally.of(P, [1, 1, 1])), "all outcomes are 1"),
    (STATISTIC, lambda: ct.cox_recalibration(EVEN), "all predictions are equal"),
    (STATISTIC, lambda: ct.cox_recalibration(ct.Tally.of([0.1, 0.3, 0.2, 0.6], [0, 0, 0, 1])),
     "separated by the prediction"),
    (STATISTIC, lambda: ct.cox_recalibration(WEIGHTED), "no tally of them"),
    (STATISTIC, lambda: ct.report(THREE, recalibrated=np.full((100, 3), 1 / 3)),
     "recalibrated= needs the rows"),
    # comparisons
    (STATISTIC, lambda: ct.compare(PAIR[0], PAIR[0]), "paired=False compares models on different"),
    (STATISTIC, lambda: ct.compare(*PAIR[:1] * 2, paired=False, method="swap"), "compared by 'z'"),
    (STATISTIC, lambda: ct.compare(*PAIR, paired=False),
     "different grids cannot be compared: 4800 and 60"),
    (STATISTIC, lambda: ct.compare(PAIR[0], [0.1], labels_b=[1], **UNPAIRED),
     "tally the rows of both models"),
    (STATISTIC, lambda: ct.compare([0.1], PAIR[0], **UNPAIRED), "tally the rows of both models"),
    (STATISTIC, lambda: ct.compare(*PAIR[:1] * 2, [1], **UNPAIRED), "leave out labels"),
    (STATISTIC, lambda: ct.compare(*PAIR[:1] * 2, weights=[1], **UNPAIRED), "leave out weights"),
    (STATISTIC, lambda: ct.compare(*PAIR[:1] * 2, statistic=ct.SKCE(), **UNPAIRED),
     "needs the rows"),
    (STATISTIC, lambda: ct.compare(SUMS, MANY), "no sample of rows"),
    # monitors and plans
    (STATISTIC, lambda: MONITOR.update(WEIGHTED), "does not take tallies of weighted rows"),
    (STATISTIC, lambda: MONITOR.update(TALLY, Y), "leave out labels"),
    (STATISTIC, lambda: MONITOR.update(TOP), "cannot be looked at through"),
    (DATA, lambda: TOPS.update(THREE), "3 classes"),
    (STATISTIC, lambda: ct.plan(P, Y), "3 rows, 1 of the rarest label, are too"),
    (STATISTIC, lambda: ct.plan(TALLY), "alternative=planning.Slope"),
    (STATISTIC, lambda: ct.plan(np.full(80, 0.1), np.arange(80) < 4),
     "80 rows, 4 of the rarest label"),
    (STATISTIC, lambda: ct.plan(ct.Tally.of(TWO, lens=ct.TopK(1))), "cannot be looked at through"),
    (STATISTIC, lambda: ct.plan(ct.Tally.of(TWO), against=np.ones(99)), "not like a function"),
]  # fmt: skip


@pytest.mark.parametrize(("error", "call", "words"), REFUSED)
def test_refused(error, call, words):
    with pytest.raises(error, match=words):
        call()


NEED_ROWS = [
    *(lambda t: ct.ECE()(t), lambda t: ct.ECE()(t, TWO.labels), np.asarray),
    *(lambda t: ct.calibration_test(TWO.probs, t), ct.Predictions.of, ct.Tally.of, ct.Tallies.of),
    *(lambda t: ct.recalibration.PlattScaling().fit(t), ct.OneVsRest(1), ct.TopK(1)),
    ct.Partition([[0], [1]]),
]


@pytest.mark.parametrize("use", NEED_ROWS)
@pytest.mark.parametrize("kind", ["Tally", "Tallies"])
def test_tallies_say_that_they_are_no_rows(kind, use):
    with pytest.raises(DATA, match=f"a {kind} has no rows"):
        use(getattr(ct, kind).of(TWO))


OTHER = ct.examples.GaussianMixture(0, -2.6).sample(600, rng=1)
KINDS = {"Tally": ct.Tally.of(TWO), "Tallies": ct.Tallies.of(TWO)}


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"paths": KINDS["Tally"]}, "path is a Tally, not the names of files"),
        ({"paths": []}, "paths is empty"),
        ({"paths": [None]}, "not the names of files"),
        ({"lens": 3}, "lens is 3: give a lens"),
        ({"grid": 0}, "grid must be a whole number"),
    ],
)
def test_scan_refuses_in_words(words_file, given, words):
    with pytest.raises((ct.StatisticError, ValueError, TypeError), match=words):
        ct.scan(**{"paths": words_file, "probs": "p", "label": "label = 'yes'"} | given)


@pytest.mark.slow
def test_tallies_of_two_classes_do_what_their_tally_does():
    several, one = KINDS["Tallies"], KINDS["Tally"]
    assert str(ct.Monitor().update(several)) == str(ct.Monitor().update(one))
    other = ct.Tallies.of(OTHER)
    options = {"margin": 0.1, "paired": False, "rng": 1}
    found = ct.gate(several, against=other, **options)
    assert found.checks == ct.gate(one, against=ct.Tally.of(OTHER), **options).checks
    truth = {"alternative": ct.planning.Slope(0.8), "n_datasets": 100, "rng": 1}
    assert ct.plan(several, **truth).n == ct.plan(one, **truth).n


@pytest.fixture
def words_file(tmp_path):
    path, names = tmp_path / "part.csv", np.array(["no", "yes"])
    pairs = zip(TWO.probs[:, 1], names[TWO.labels], strict=True)
    lines = [f"{p:.3f},{1 - p:.3f},{y}" for p, y in pairs]
    path.write_text("\n".join(["p,q,label", *lines]))
    return path


@pytest.mark.parametrize(
    "other",
    [
        {"label": "label = 'no'", "as_is": True},
        {"probs": "q", "as_is": True},
        {"drop_missing": True},
    ],
)
def test_a_state_is_of_the_columns_and_labels_that_were_asked(words_file, tmp_path, other):
    asked = {"probs": "p", "label": "label = 'yes'", "resume": tmp_path / "state"}
    assert ct.scan(words_file, **asked) == ct.scan(words_file, **asked)
    name = next(iter(other))
    with pytest.raises(ct.StatisticError, match=f"was written with {name}=.*, not .*: give the"):
        ct.scan(words_file, **asked | other)


def test_tallies_of_arrays_ask_as_tests_do():
    rng = np.random.default_rng(2)
    p = rng.beta(2.0, 3.0, 500)
    y = (rng.random(500) < 1.0 - p) * 1
    for make in (ct.Tally.of, ct.Tallies.of):
        with pytest.raises(ct.DoubtfulInputError, match="events are rarer where probs are higher"):
            make(p, y)
        noted = make(p, y, as_is=True)
        assert any("read as it is" in note for note in noted.notes)
        assert make(1.0 - p, y).n == 500
    predicted = (p > 0.5) * 1
    with (
        pytest.warns(ct.DoubtfulInputWarning, match="may be predicted classes"),
        pytest.raises(ct.DoubtfulInputError, match="predicted class"),
    ):
        ct.Tally.of(p, predicted)
    clusters = np.arange(500) // 5
    with pytest.raises(ct.DoubtfulInputError, match="rarer"):
        ct.ClusteredTally.of(p, y, clusters=clusters)
