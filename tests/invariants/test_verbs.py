"""Every verb gives the same answer from every representation of its rows, and survives JSON."""

import math
import re
import warnings
from functools import partial

import numpy as np
import pytest

import caltest as ct

N = 400
GENERATOR = np.random.default_rng(12)
#: Values on edges of bins, several rows in most of them, no outcome impossible.
P = GENERATOR.integers(1, 40, N) / 40
Y = (GENERATOR.random(N) < 0.9 * P + 0.03).astype(int)
OTHER = np.clip(1.3 * P - 0.1, 0.025, 0.975)
WEIGHTS = GENERATOR.choice([1.0, 1.7, 3.0], N)
FEW = {"n_resamples": 199, "rng": 3}
#: What is asked, with the facts of its rows and the others that it takes.
VERBS = {
    "test": partial(ct.calibration_test, **FEW),
    "drawn test": partial(ct.calibration_test, statistic=ct.CoxScore(), **FEW),
    "joint test": partial(ct.joint_test, pairs=[(ct.ECE(), None), (ct.DebiasedL2(), None)], **FEW),
    "interval": partial(ct.confidence_interval, **FEW),
    "debiased interval": partial(ct.confidence_interval, statistic=ct.DebiasedL2(), **FEW),
    "equivalence": partial(ct.equivalence_test, tolerance=0.2, **FEW),
    "audit": partial(ct.audit, **FEW),
    "gate": partial(ct.gate, tolerance=0.1, **FEW),
    "curve": partial(ct.reliability_curve, bins=10),
    "exact bars": partial(
        ct.reliability_curve,
        bins=ct.EdgeBins([0.1, 0.5]),
        band="clopper-pearson",
        simultaneous=True,
    ),
    "band": partial(ct.reliability_fit, fit="band"),
    "brier": ct.brier_decomposition,
    "corp": ct.corp_decomposition,
    "log corp": partial(ct.corp_decomposition, score="log"),
    "cox": ct.cox_recalibration,
    "profile cox": partial(ct.cox_recalibration, method="profile"),
    "sensitivity": partial(ct.bin_sensitivity, bins=[5, 10, 20]),
    "comparison": lambda p, *labels, **facts: ct.compare(p, OTHER, *labels, **FEW, **facts),
}


def answer(verb, *data, **facts):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return VERBS[verb](*data, **facts)


def numbers(value, path=""):
    """Return the numbers of a result by their place in it."""
    if isinstance(value, dict):
        pairs = value.items()
    elif isinstance(value, list | tuple):
        pairs = enumerate(value)
    else:
        is_number = isinstance(value, int | float) and not isinstance(value, bool)
        return {path: float(value)} if is_number and math.isfinite(value) else {}
    return {k: v for key, item in pairs for k, v in numbers(item, f"{path}.{key}").items()}


SAME = {
    "lists": lambda verb: answer(verb, P.tolist(), Y.tolist()),
    "two columns": lambda verb: answer(verb, np.column_stack([1.0 - P, P]), Y),
    "predictions": lambda verb: answer(verb, ct.Predictions.of(P, Y)),
    "weights all alike": lambda verb: answer(verb, P, Y, weights=np.full(N, 0.7)),
    "clusters of one row": lambda verb: answer(verb, P, Y, clusters=np.arange(N)[::-1]),
}
#: What is drawn in another way, or follows from draws; the other numbers of a result are computed.
DRAWN = re.compile("null_mean|null_std|pvalue|adjusted|critical|low|high|smallest|rows$")
#: Verbs that draw, for rows alike and for rows of several weights.
DRAWING = {"drawn test", "joint test", "audit"}
DRAWING_WEIGHTED = DRAWING | {"interval", "debiased interval", "equivalence", "gate"}
#: What tallies of weighted rows do not have.
REFUSED = {
    "curve": "draws rows",
    "exact bars": "counts rows, not weights",
    "band": "does not take weights",
    "cox": "no tally of them",
    "profile cox": "no tally of them",
}


@pytest.mark.parametrize("verb", VERBS)
def test_the_same_rows_have_the_same_answer(verb):
    expected = answer(verb, P, Y)
    exact = pytest.approx(numbers(expected.as_dict()), rel=1e-9, abs=1e-12)
    for name, representation in SAME.items():
        result = representation(verb)
        assert numbers(result.as_dict()) == exact, name
        assert result.recipe == expected.recipe, name
    order = GENERATOR.permutation(N)
    if verb in {"test", "interval", "curve", "exact bars", "brier", "corp", "cox", "gate"}:
        assert numbers(answer(verb, P[order], Y[order]).as_dict()) == pytest.approx(
            numbers(expected.as_dict()), rel=2e-3, abs=1e-9
        )


@pytest.mark.parametrize("verb", [name for name in VERBS if name != "comparison"])
@pytest.mark.parametrize("weighted", [False, True])
def test_a_tally_has_the_answer_of_its_rows(verb, weighted):
    facts = {"weights": WEIGHTS} if weighted else {}
    halves = (np.arange(N) < 150, np.arange(N) >= 150)
    tally = sum(ct.Tally.of(P[s], Y[s], **{k: v[s] for k, v in facts.items()}) for s in halves)
    if weighted and verb in REFUSED:
        with pytest.raises(ct.StatisticError, match=REFUSED[verb]):
            answer(verb, tally)
        return
    rows, sums = (answer(verb, *x) for x in ((ct.Predictions.of(P, Y, **facts),), (tally,)))
    expected, found = numbers(rows.as_dict()), numbers(sums.as_dict())
    if weighted and verb == "audit":  # whose slope is Cox's, of which there is no tally either
        expected = {key: value for key, value in expected.items() if ".slope" not in key}
    assert found.keys() == expected.keys()
    drawing = verb in (DRAWING_WEIGHTED if weighted else DRAWING)
    drawn = {key for key in expected if drawing and DRAWN.search(key)}
    for key, value in expected.items():
        room = {"rel": 0.3, "abs": 0.12} if key in drawn else {"rel": 1e-7, "abs": 1e-9}
        assert found[key] == pytest.approx(value, **room), key
    assert len(drawn) < len(expected)


#: Numbers that weights make when a row of weight 2 counts as two rows; errors follow rows, though.
REPEATED = {
    "brier": "score|reliability|resolution|uncertainty|within",
    "corp": "score|miscalibration|discrimination|uncertainty|observed",
    "log corp": "score|miscalibration|discrimination|uncertainty|observed",
    "cox": r"\.(slope|intercept|in_the_large)$",
    "sensitivity": "estimate",
    "curve": "predicted|observed",
    "test": "estimate",
    "interval": r"\.estimate",
    "joint test": r"tests\.0\.estimate",
}


@pytest.mark.parametrize("verb", REPEATED)
def test_weights_count_as_repeated_rows(verb):
    times = GENERATOR.integers(0, 4, N)
    facts = {"band": None} if verb == "curve" else {}
    heavy = answer(verb, P, Y, weights=0.7 * times, **facts)
    copies = answer(verb, np.repeat(P, times), np.repeat(Y, times), **facts)
    found, expected = (
        {k: v for k, v in numbers(r.as_dict()).items() if re.search(REPEATED[verb], k)}
        for r in (heavy, copies)
    )
    assert found
    assert found == pytest.approx(expected, rel=1e-7, abs=1e-9)


@pytest.mark.parametrize("verb", ["drawn test", "joint test", "interval", "audit", "comparison"])
def test_workers_change_nothing(verb):
    assert answer(verb, P, Y, workers=2).as_dict() == answer(verb, P, Y).as_dict()
