"""Every statistic, through every lens, gets the same answer however its data arrive.

A row of ``STATISTICS`` in ``conftest.py`` runs through all of them. Nothing internal is used.
"""

import functools
import json
import os
import pickle
import re
import subprocess
import sys
import warnings
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import scipy.stats
from conftest import LENSES, STATISTICS

import caltest as ct

N = 72
TWO = [ct.OneVsRest(2), ct.TopK(1)]
GENERATOR = np.random.default_rng(5)
#: Multiples of 1/24 above 0: many ties, many values on edges of bins, no outcome impossible.
PROBS = (1 + GENERATOR.multinomial(20, GENERATOR.dirichlet(np.full(4, 0.6), N))) / 24
LABELS = (GENERATOR.random((N, 1)) >= PROBS.cumsum(axis=1)[:, :-1]).sum(axis=1)
WEIGHTS = GENERATOR.integers(1, 4, N)
HALVES = GENERATOR.random(N) < 0.5
ORDER = GENERATOR.permutation(N)
NAMES = np.array(["ant", "bee", "cow", "dog"])
RUN = {"n_resamples": 39, "rng": 7}


def answer(statistic, lens, probs=PROBS, labels=LABELS, **facts: Any):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return ct.calibration_test(probs, labels, statistic, lens=lens, **RUN | facts)


@functools.cache
def of_rows(statistic, lens):
    return answer(statistic, lens)


@functools.cache
def of_weighted_rows(statistic, lens):
    return answer(statistic, lens, weights=WEIGHTS)


def left_out(statistic, lens):
    """The rows, and as many others that weigh nothing."""
    probs, labels = np.concatenate([PROBS, PROBS[::-1]]), np.concatenate([LABELS, LABELS])
    weights = np.repeat([2.0, 0.0], N)
    return answer(statistic, lens, probs, labels, weights=weights)


def in_threads(statistic, lens):
    with ThreadPoolExecutor(2) as pool:
        return answer(statistic, lens, workers=pool.map)


#: The same rows in another dress: not a bit of the answer may differ.
SAME = {
    "lists": lambda s, lens: answer(s, lens, PROBS.tolist(), LABELS.tolist()),
    "columns in memory": lambda s, lens: answer(s, lens, np.asfortranarray(PROBS)),
    "every second row": lambda s, lens: answer(
        s, lens, np.repeat(PROBS, 2, axis=0)[::2], np.repeat(LABELS, 2)[::2]
    ),
    "predictions": lambda s, lens: answer(s, lens, ct.Predictions.of(PROBS, LABELS), None),
    "labels with names": lambda s, lens: answer(
        s, lens, ct.Predictions.of(PROBS, NAMES[LABELS], classes=NAMES), None
    ),
    "weights all 1": lambda s, lens: answer(s, lens, weights=np.ones(N)),
    "weights all 0.3": lambda s, lens: answer(s, lens, weights=np.full(N, 0.3)),
    "weights 0 for others": left_out,
    "clusters of one row": lambda s, lens: answer(s, lens, clusters=np.arange(N)),
    "workers=2": lambda s, lens: answer(s, lens, workers=2),
    "workers=pool.map": in_threads,
}


def through(row, lens):
    """Whether the lens shows what the statistic is of."""
    if row.whole:
        return lens in (ct.TopK(2), ct.Canonical())
    return not row.two_classes or lens in TWO


def pair_of_lenses(row):
    """Two lenses that show what the statistic is of; one for the whole vector."""
    if row.whole:
        return [ct.Canonical()]
    return TWO if row.two_classes else [TWO[0], ct.Canonical()]


CASES = [
    pytest.param(at, lens, id=f"{row}-{lens}")
    for at, row in enumerate(STATISTICS)
    for lens in LENSES
    if through(row, lens)
]
PAIRS = [
    pytest.param(row, lens, id=f"{row}-{lens}")
    for row in STATISTICS
    for lens in pair_of_lenses(row)
]
WEIGHTED = [case for case in PAIRS if case.values[0].weights]
UNWEIGHTED = [case for case in PAIRS if not case.values[0].weights]
NEEDS = r"needs the rows|not made of the cells"
ALONE = [pytest.param(row, id=str(row)) for row in STATISTICS]


@pytest.mark.parametrize(("at", "lens"), CASES)
def test_the_same_rows_have_the_same_answer(at, lens):
    statistic = STATISTICS[at].statistic
    expected = of_rows(statistic, lens)
    draws = expected.null_distribution
    for name, representation in SAME.items():
        result = representation(statistic, lens)
        assert result.estimate == pytest.approx(expected.estimate, rel=1e-12, abs=1e-14), name
        assert result.pvalue_bracket == expected.pvalue_bracket, name
        assert (result.null, result.pvalue) == (expected.null, expected.pvalue), name
        assert (result.null_mean, result.n) == (expected.null_mean, expected.n), name
        if expected.n_resamples:
            np.testing.assert_array_equal(result.null_distribution, draws, err_msg=name)
    induced = lens(ct.Predictions.of(PROBS, LABELS))
    assert statistic(induced) == pytest.approx(expected.estimate, rel=1e-9, abs=1e-13)


@pytest.mark.parametrize(("row", "lens"), PAIRS)
def test_order_changes_nothing_or_is_known_to(row, lens):
    if not row.any_order:
        return
    value = of_rows(row.statistic, lens).estimate
    shuffled = answer(row.statistic, lens, PROBS[ORDER], LABELS[ORDER]).estimate
    assert shuffled == pytest.approx(value, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(("row", "lens"), WEIGHTED)
def test_order_changes_nothing_of_weighted_rows(row, lens):
    if not row.any_order:
        return
    value = of_weighted_rows(row.statistic, lens).estimate
    shuffled = answer(row.statistic, lens, PROBS[ORDER], LABELS[ORDER], weights=WEIGHTS[ORDER])
    assert shuffled.estimate == pytest.approx(value, rel=1e-9, abs=1e-12)


@pytest.mark.parametrize(("row", "lens"), UNWEIGHTED)
def test_weights_are_refused_by_name(row, lens):
    name = re.escape(repr(row.statistic))
    with pytest.raises(ct.StatisticError, match=f"{name} does not take weights"):
        answer(row.statistic, lens, weights=WEIGHTS)


@pytest.mark.parametrize(("row", "lens"), WEIGHTED)
def test_weights_count_by_their_ratios(row, lens):
    result = of_weighted_rows(row.statistic, lens)
    assert result.effective_n == pytest.approx(WEIGHTS.sum() ** 2 / (WEIGHTS**2).sum())
    for factor in (3.0, 0.1):
        scaled = answer(row.statistic, lens, weights=factor * WEIGHTS)
        assert scaled.estimate == pytest.approx(result.estimate, rel=1e-12)
        assert scaled.pvalue_bracket == pytest.approx(result.pvalue_bracket, rel=1e-9)


@pytest.mark.parametrize(("row", "lens"), WEIGHTED)
def test_weights_count_as_copies_do_or_are_at_least_not_passed_over(row, lens):
    result = of_weighted_rows(row.statistic, lens)
    if row.copies:
        times = np.repeat(np.arange(N), WEIGHTS)
        copies = answer(row.statistic, lens, PROBS[times], LABELS[times])
        assert result.estimate == pytest.approx(copies.estimate, rel=1e-9, abs=1e-12)
    else:
        plain = of_rows(row.statistic, lens)
        assert (result.estimate, result.null_std) != (plain.estimate, plain.null_std)


@pytest.mark.parametrize("row", [case for case in ALONE if not case.values[0].exact])
def test_a_statistic_without_an_exact_law_refuses_one_by_name(row):
    name = re.escape(repr(row.statistic))
    with pytest.raises(ct.StatisticError, match=f"no exact null for {name}"):
        answer(row.statistic, pair_of_lenses(row)[0], null="exact")


@pytest.mark.parametrize("row", [case for case in ALONE if case.values[0].exact])
def test_exact_laws_are_the_laws_of_the_draws(row):
    lens = pair_of_lenses(row)[0]
    result = answer(row.statistic, lens, null="exact")
    drawn = answer(row.statistic, lens, null=ct.RedrawLabels(), n_resamples=1999)
    low, high = result.pvalue_bracket
    assert high - low <= 0.0101 * high  # what a bracket promises
    assert drawn.pvalue == pytest.approx(result.pvalue, abs=4.5 * (0.25 / 1999) ** 0.5)
    noise = result.null_std / 1999**0.5
    assert drawn.null_mean == pytest.approx(result.null_mean, abs=4.5 * noise + 1e-4)
    assert of_rows(row.statistic, lens).null == "exact"


@functools.cache
def tallies(lens, weighted):
    """Return the tally of all rows, the sum of those of two halves, and the facts of the rows."""
    facts = {"weights": WEIGHTS} if weighted else {}
    first, second = (
        ct.Tally.of(PROBS[part], LABELS[part], lens=lens, **{k: v[part] for k, v in facts.items()})
        for part in (HALVES, ~HALVES)
    )
    assert first + second == second + first
    return ct.Tally.of(PROBS, LABELS, lens=lens, **facts), first + second, facts


def refusal(row, weighted):
    """Return the words by which a statistic refuses a tally, "" if it takes one."""
    if row.whole:
        return "whole probability vector"
    if row.tally is None:
        return NEEDS
    return "" if row.weights or not weighted else "does not take weights"


EVERY_TALLY = [
    pytest.param(case.values[0], lens, weighted, id=f"{case.id}-{lens}-{weighted}")
    for case in ALONE
    for lens in TWO
    for weighted in (False, True)
]
TAKEN = [case for case in EVERY_TALLY if not refusal(case.values[0], case.values[2])]


@pytest.mark.parametrize(
    ("row", "lens", "weighted"), [case for case in EVERY_TALLY if case not in TAKEN]
)
def test_a_statistic_that_needs_more_than_a_tally_says_so(row, lens, weighted):
    whole, _, _ = tallies(lens, weighted)
    with pytest.raises(ct.StatisticError, match=refusal(row, weighted)):
        answer(row.statistic, None, whole, None)


@pytest.mark.parametrize(("row", "lens", "weighted"), TAKEN)
def test_tallies_answer_as_their_rows(row, lens, weighted):
    whole, parts, _ = tallies(lens, weighted)
    assert parts == whole
    given = (of_weighted_rows if weighted else of_rows)(row.statistic, lens)
    result = answer(row.statistic, None, whole, None)
    assert result.estimate == pytest.approx(given.estimate, rel=row.tally, abs=1e-12)
    assert (result.null, result.n) == (given.null, given.n)
    assert result.effective_n == pytest.approx(given.effective_n)
    if given.null == "exact":
        assert result.pvalue_bracket == pytest.approx(given.pvalue_bracket, rel=1e-9, abs=1e-12)
        assert result.null_mean == pytest.approx(given.null_mean, rel=1e-5, abs=1e-10)
    else:  # other draws of the same law
        noise = 4.5 * (given.null_std + result.null_std) / 39**0.5
        assert result.null_mean == pytest.approx(given.null_mean, abs=noise)


@pytest.mark.parametrize(
    ("row", "lens", "weighted"), [case for case in TAKEN if case.values[1] == TWO[0]]
)
def test_tallies_of_all_lenses_answer_as_that_of_one(row, lens, weighted):
    whole, _, facts = tallies(lens, weighted)
    several = answer(row.statistic, lens, ct.Tallies.of(PROBS, LABELS, **facts), None)
    expected = answer(row.statistic, None, whole, None).estimate
    assert several.estimate == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("row", "lens"), PAIRS)
def test_draws_are_the_values_of_redrawn_labels(row, lens):
    """A function that calls the statistic shares its labels, and none of its shortcuts."""

    def plain(probs, labels):
        return row.statistic(ct.Predictions(probs, labels, induced=True))

    run = {"null": ct.RedrawLabels()}
    fast, slow = (answer(s, lens, **run) for s in (row.statistic, plain))
    assert slow.estimate == pytest.approx(fast.estimate, rel=1e-9, abs=1e-13)
    room = {"rtol": 1e-7, "atol": 1e-7 if "l2" in repr(row.statistic) else 1e-10}
    np.testing.assert_allclose(fast.null_distribution, slow.null_distribution, **room)
    first = answer(row.statistic, lens, **run | {"n_resamples": 17}).null_distribution
    np.testing.assert_array_equal(np.asarray(fast.null_distribution)[:17], first)


def numbers(rows):
    """Return what compiled and interpreted code have to agree in."""
    run = {"null": ct.RedrawLabels(), "n_resamples": 5}
    found = {}
    for row in STATISTICS:
        for lens in pair_of_lenses(row)[: 1 if row.two_classes else 2]:
            facts = {"weights": WEIGHTS} if row.weights else {}
            few = {"probs": np.resize(PROBS, (rows, 4)), "labels": np.resize(LABELS, rows)}
            weighted = {name: np.resize(values, rows) for name, values in facts.items()}
            for name, value in (("plain", {}), ("weighted", weighted)):
                result = answer(row.statistic, lens, **few, **value, **run)
                draws = np.asarray(result.null_distribution).tolist()
                found[f"{row} {lens} {name}"] = [result.estimate, *draws]
    return found


@pytest.mark.parametrize("rows", [24, pytest.param(3000, marks=pytest.mark.slow)])
@pytest.mark.slow
def test_interpreted_code_gives_the_numbers_of_compiled_code(rows):
    """Also of more events than a byte can count, at one prediction and in all."""
    code = f"import json, test_representations as t; print(json.dumps(t.numbers({rows})))"
    folders = [str(Path(__file__).parents[i]) for i in (0, 1, 2)]
    environment = os.environ | {"NUMBA_DISABLE_JIT": "1", "PYTHONPATH": os.pathsep.join(folders)}
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    )
    interpreted, compiled = json.loads(done.stdout), numbers(rows)
    assert interpreted.keys() == compiled.keys()
    for name, values in compiled.items():
        np.testing.assert_allclose(interpreted[name], values, rtol=1e-9, atol=1e-9, err_msg=name)


@pytest.mark.parametrize("row", ALONE)
def test_statistics_are_values(row):
    """They print as they are written, and a copy from another process is the same."""
    again = eval(repr(row.statistic), vars(ct).copy() | {n: getattr(ct, n) for n in ct.__all__})
    for copy in (again, pickle.loads(pickle.dumps(row.statistic))):
        assert (copy, hash(copy)) == (row.statistic, hash(row.statistic))


@pytest.mark.slow
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("row", ALONE)
def test_calibrated_models_are_rejected_as_often_as_said(row, weighted):
    """The limits are binomial: a correct test fails here once in 10⁵."""
    if weighted and not row.weights:
        with pytest.raises(ct.StatisticError, match="does not take weights"):
            answer(row.statistic, TWO[0], weights=WEIGHTS)
        return
    generator, runs, lens = np.random.default_rng(3), 400, pair_of_lenses(row)[0]
    facts = {"weights": GENERATOR.pareto(1.5, N) + 0.1} if weighted else {}
    pvalues = []
    for seed in range(runs):
        labels = (generator.random((N, 1)) >= PROBS.cumsum(axis=1)[:, :-1]).sum(axis=1)
        run = {"null": ct.RedrawLabels(), "n_resamples": 19, "rng": seed}
        pvalues.append(answer(row.statistic, lens, PROBS, labels, **run | facts).pvalue)
    for level in (0.05, 0.2, 0.5):
        limit = scipy.stats.binom.isf(1e-5, runs, level)
        assert np.sum(np.array(pvalues) <= level + 1e-9) <= limit
    assert min(pvalues) < 0.5
