"""The engine: same numbers for any workers, early stopping, interruption, refusals."""

import itertools
import sys
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from functools import partial
from multiprocessing import get_context

import numpy as np
import pytest
from conftest import seen

import caltest as ct
from caltest._base.arrays import progress, reaching
from caltest.errors import StatisticError
from caltest.inference import replicate
from caltest.inference.null import replicates_of
from caltest.nulls import Bootstrap, RedrawLabels, Run
from caltest.statistics.prepared import prepare


def stopped(data, n, stop_at, rng, workers=1):
    """Sequential stopping, as calibration_test does it."""
    data = replace(data, induced=True)
    return replicates_of(
        mean_gap, prepare(mean_gap, data), RedrawLabels(), stop_when=partial(reaching, stop_at),
        run=Run(n_resamples=n, rng=rng, workers=workers),
    )  # fmt: skip


def mean_gap(probs, labels):
    return abs(float((probs[:, 0] - (labels == 0)).mean()))


@pytest.fixture(scope="module")
def data():
    return ct.examples.SixPoints().sample(150, 1)


@pytest.mark.slow
def test_a_process_pool_gives_the_same_numbers(data):
    run = {"n_resamples": 70, "rng": 5}
    alone = replicate(data, mean_gap, RedrawLabels(), **run)
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        spread = replicate(data, mean_gap, RedrawLabels(), workers=pool.map, **run)
        whole = ct.calibration_test(data, lens=ct.Canonical(), workers=pool.map, **run)
    np.testing.assert_array_equal(np.asarray(alone), np.asarray(spread))
    assert whole == ct.calibration_test(data, lens=ct.Canonical(), **run)


def test_early_stopping_ends_at_the_twentieth_exceedance(data):
    full = np.asarray(replicate(data, mean_gap, RedrawLabels(), n_resamples=2000, rng=1))
    t = float(np.quantile(full, 0.7))
    for workers in (1, 2):
        null = stopped(data, 2000, t, 1, workers)
        values = np.asarray(null)
        assert (null.ended, (values >= t - 1e-12).sum()) == ("early", 20)
        assert values[-1] >= t - 1e-12
        np.testing.assert_array_equal(values, full[: values.size])


def test_early_stopping_in_a_test(data):
    run = {"lens": ct.Canonical(), "early_stop": True, "rng": 2}
    calibrated = ct.Predictions(data.probs, np.arange(data.n) % 3)
    result = ct.calibration_test(calibrated, None, mean_gap, **run)
    assert (result.ended, result.pvalue) == ("early", 20 / result.n_resamples)
    clear = ct.Predictions(data.probs, np.zeros(data.n, dtype=np.int64))
    result = ct.calibration_test(clear, None, mean_gap, n_resamples=500, **run)
    assert (result.ended, result.n_resamples, result.pvalue) == ("complete", 500, 1 / 501)


def test_ctrl_c_keeps_what_was_drawn(data):
    calls = 0

    def interrupted(probs, labels):
        nonlocal calls
        calls += 1
        if calls == 100:
            raise KeyboardInterrupt
        return mean_gap(probs, labels)

    null = replicate(data, interrupted, RedrawLabels(), n_resamples=1000, rng=1)
    assert null.ended == "interrupted"
    full = np.asarray(replicate(data, mean_gap, RedrawLabels(), n_resamples=96, rng=1))
    np.testing.assert_array_equal(np.asarray(null), full)


@pytest.mark.slow
def test_progress_appears_after_two_seconds_and_only_on_a_terminal(data, capsys, monkeypatch):
    def slow(probs, labels):
        time.sleep(0.04)
        return mean_gap(probs, labels)

    replicate(data, mean_gap, RedrawLabels(), n_resamples=64, rng=1)
    assert capsys.readouterr().err == ""
    replicate(data, slow, RedrawLabels(), n_resamples=60, rng=1)
    assert capsys.readouterr().err == ""
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    replicate(data, mean_gap, RedrawLabels(), n_resamples=64, rng=1)
    assert capsys.readouterr().err == ""
    with progress(2, "classes"):  # there is one bar at a time
        replicate(data, slow, RedrawLabels(), n_resamples=60, rng=1)
    assert "replicates" not in capsys.readouterr().err
    replicate(data, slow, RedrawLabels(), n_resamples=96, rng=1)
    assert "replicates" in capsys.readouterr().err


def test_a_statistic_that_fails_on_resampled_data_is_refused(data):
    one = ct.Predictions(data.probs, np.ones(data.n, dtype=np.int64))
    options = {"null": RedrawLabels(), "n_resamples": 99, "lens": ct.Canonical()}
    with np.errstate(divide="ignore"), pytest.raises(StatisticError, match="resampled data sets"):
        ct.calibration_test(one, None, lambda probs, labels: 1 / (labels[0] == 1), **options)


@pytest.mark.filterwarnings("ignore::caltest.DoubtfulInputWarning")
@pytest.mark.parametrize("null", ["auto", RedrawLabels()])
def test_what_a_constant_null_excludes_is_evidence(null):
    """Every outcome had probability 0: that is no reason to say that nothing can be tested."""
    labels = np.arange(60) % 3
    result = ct.calibration_test(np.eye(3)[(labels + 1) % 3], labels, null=null, as_is=True)
    assert result.pvalue <= 0.001
    assert "cannot be tested" not in str(result)


def test_bootstrap_against_enumeration():
    """The mean gap of three rows, over all 27 samples of three."""
    data = ct.Predictions.of([0.9, 0.6, 0.2], [1, 0, 1])
    gaps = data.probs[:, 0] - (data.labels == 0)
    values = [abs(gaps[list(rows)].mean()) for rows in itertools.product(range(3), repeat=3)]
    law = replicate(data, mean_gap, Bootstrap(), n_resamples=4000, rng=1)
    assert abs(law.mean() - np.mean(values)) < 4 * np.std(values) / np.sqrt(4000)
    assert set(np.round(law.values, 12)) == set(np.round(values, 12))


def test_clusters_are_drawn_whole(data):
    clusters = np.array(list("aabbbc") + ["d"] * (data.n - 6))
    drawn_rows = []

    def sizes(probs, labels):
        rows = [np.flatnonzero((data.probs == p).all(axis=1) & (data.labels == y))[0]
                for p, y in zip(probs, labels, strict=True)]  # fmt: skip
        drawn_rows.append(rows)
        return float(len(probs))

    numbered = seen(np.column_stack([x := np.linspace(0.1, 0.9, data.n), 1 - x]))
    original, data = data, numbered
    law = replicate(data, sizes, Bootstrap(clusters), n_resamples=300, rng=1)
    for rows in drawn_rows:
        counts = np.bincount(rows, minlength=data.n)
        drawn = [np.unique(counts[clusters == g]) for g in "abcd"]
        assert all(c.size == 1 for c in drawn)
        assert sum(c[0] for c in drawn) == 4
    expected = [2, 3, 1, original.n - 6]
    assert abs(law.mean() - np.sum(expected)) < 4 * np.std(expected) * 2 / np.sqrt(300)
