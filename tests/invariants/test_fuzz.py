"""Whatever is passed, caltest answers or says in a sentence why not: no crash, no hang."""

import warnings

import click
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import caltest as ct
from caltest.cli import options as shared

#: Examples of each test; 17 000 of each make 10⁵.
EXAMPLES = 300
SETTINGS = settings(
    max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck), database=None
)
NAMES = sorted({name for words in shared.VOCABULARY.values() for name in words})


def a_recipe():
    """Return nearly right recipes: calls of known and unknown names with any arguments."""
    name = st.sampled_from([*NAMES, "ECE2", "__import__", "lambda", "x"])
    numbers = st.integers(-3, 10**7) | st.floats() | st.booleans()
    atom = st.builds(repr, numbers | st.text(max_size=4) | st.none()) | name
    option = st.sampled_from(["bins", "distance", "n_bins", "closed", "k", "c", "estimator", "x"])

    def call(inner):
        arguments = st.lists(inner | st.builds("{}={}".format, option, inner), max_size=3)
        joined = arguments.map(", ".join)
        return (
            st.builds("{}({})".format, name, joined)
            | st.builds("[{}]".format, joined)
            | st.builds("-{}".format, inner)
            | st.builds("{} + {}".format, inner, inner)
        )

    return st.recursive(atom, call, max_leaves=8)


def understood(kind, text):
    """Turn text into a value as the command line does, or refuse it."""
    try:
        built = shared.Recipe(kind).convert(text, None, None)
    except click.BadParameter:
        return
    vocabulary = shared.VOCABULARY[kind]
    assert vocabulary.fits(type(built)) or (kind == "bins" and type(built) is int)
    assert eval(repr(built), dict(vocabulary)) == built or built != built


@pytest.mark.slow
@SETTINGS
@given(st.sampled_from(sorted(shared.VOCABULARY)), st.text(max_size=200) | a_recipe())
def test_recipes(kind, text):
    understood(kind, text)


def a_column(n):
    """Return n values: probabilities, numbers of any kind, labels, words."""
    kinds = [
        arrays.arrays(np.float64, n, elements=st.floats(0, 1)),
        arrays.arrays(np.float64, n, elements=st.sampled_from([0.0, 0.25, 0.5, 1.0])),
        arrays.arrays(st.sampled_from([np.float32, np.float64]), n),
        arrays.arrays(st.sampled_from([np.int8, np.int64, np.uint8, np.bool_]), n),
        arrays.arrays(np.int64, n, elements=st.integers(0, 2)),
        st.lists(st.sampled_from(["a", "b", "1", "nan", ""]) | st.none(), min_size=n, max_size=n),
    ]
    return st.one_of(kinds)


@st.composite
def rows_and_labels(draw):
    """Return what looks like predictions and labels, more or less."""
    n, n_classes = draw(st.integers(0, 12)), draw(st.integers(1, 4))
    if draw(st.booleans()):
        return draw(a_column(n)), draw(a_column(max(0, n + draw(st.integers(-1, 1)))))
    probs = draw(arrays.arrays(np.float64, (n, n_classes), elements=st.floats(0, 1)))
    if draw(st.booleans()):
        with np.errstate(all="ignore"):
            probs = probs / probs.sum(axis=1, keepdims=True)
    return probs, draw(arrays.arrays(np.int64, n, elements=st.integers(0, n_classes)))


STATISTICS = (ct.ECE(3), ct.Kuiper(), ct.DebiasedL2(3), ct.CoxScore(), ct.ScoreGap(), ct.SKCE())
LENSES = (None, ct.TopK(1), ct.TopK(2), ct.OneVsRest(1), ct.Canonical())


def answered(verb):
    """Return what a verb says; refusals by name are answers, everything else fails."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)
        try:
            return verb()
        except (ct.InvalidPredictionsError, ct.StatisticError):
            return None


RUN = {"n_resamples": 39, "rng": 0}
VERBS = {
    "test": lambda data, _, s, lens: ct.calibration_test(*data, s, lens=lens, **RUN),
    "interval": lambda data, _, s, lens: ct.confidence_interval(*data, ct.ECE(3), lens=lens, **RUN),
    "bootstrap": lambda data, _, s, lens: ct.confidence_interval(
        *data, s, lens=lens, method="bootstrap", **RUN
    ),
    "comparison": lambda data, other, s, lens: ct.compare(
        data[0], other[0], data[1], ct.DebiasedL2(3), **RUN
    ),
    "curve": lambda data, _, s, lens: ct.reliability_curve(*data, lens=lens, bins=3, **RUN),
}


@pytest.mark.slow
@pytest.mark.parametrize("verb", VERBS)
@SETTINGS
@given(rows_and_labels(), rows_and_labels(), st.sampled_from(STATISTICS), st.sampled_from(LENSES))
def test_verbs(verb, data, other, statistic, lens):
    result = answered(lambda: VERBS[verb](data, other, statistic, lens))
    if verb in ("test", "comparison"):
        assert result is None or 0.0 < result.pvalue <= 1.0
    else:
        assert result is None or np.all(result.low <= result.high + 1e-12)
    assert str(result)
