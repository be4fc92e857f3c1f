"""Rows that occur several times are noticed, and ties by rounding are not taken for them."""

import numpy as np
import pytest

import caltest as ct
from caltest.data.numbers import n_copies

KINDS = ["decimals", "few values", "float32", "constant", "resampled predictions", "votes", "rows"]


def drawn(rng, p):
    return (rng.random(len(p)) < p).astype(int)


def innocent(kind, rng):
    """Predictions that tie without being copies, of models right or wrong, and labels."""
    n = int(np.exp(rng.uniform(np.log(20), np.log(3000))))
    shape = rng.choice([0.1, 0.3, 1.0, 3.0], 2)
    p = rng.beta(*shape, n)
    if kind == "decimals":
        p = p.round(int(rng.integers(1, 5)))
    elif kind == "few values":
        p = rng.choice(rng.beta(*shape, int(rng.integers(2, 60))), n)
    elif kind == "float32":
        p = p.astype(rng.choice([np.float16, np.float32])).astype(float)
    elif kind == "constant":
        p = np.full(n, rng.random())
    elif kind == "resampled predictions":
        p = rng.choice(p, n)
    elif kind == "votes":
        p = rng.binomial(10, p) / 10
    else:
        k = int(rng.choice([3, 10, 30]))
        counts = rng.multinomial(int(rng.choice([5, 10, 100])), rng.dirichlet(np.ones(k), n))
        probs = counts / counts.sum(axis=1, keepdims=True)
        return ct.Predictions.of(probs, [rng.choice(k, p=row) for row in probs], as_is=True)
    truth = [p, p**2 / (p**2 + (1 - p) ** 2), p > 0.5][rng.integers(3)]
    return ct.Predictions.of(p, drawn(rng, truth), as_is=True)


@pytest.mark.filterwarnings("ignore::caltest.DoubtfulInputWarning")
@pytest.mark.parametrize("kind", KINDS)
def test_ties_are_not_copies(kind):
    for seed in range(400 if kind in KINDS[:4] else 60):
        data = innocent(kind, np.random.default_rng([seed, KINDS.index(kind)]))
        assert n_copies(data.probs, data.labels) == 0, seed


@pytest.mark.parametrize(
    ("n", "times", "share", "shape"),
    [(100, 10, 1.0, 1.0), (100, 10, 1.0, 0.05), (100, 2, 1.0, 1.0), (1000, 2, 0.1, 1.0)],
)
def test_copies_are_counted(n, times, share, shape):
    found = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        p = rng.beta(shape, shape, n)
        again = [np.flatnonzero(rng.random(n) < share) for _ in range(times - 1)]
        rows = rng.permutation(np.concatenate([np.arange(n), *again]))
        data = ct.Predictions.of(p, drawn(rng, p)).take(rows)
        copies = sum(map(len, again))  # some rows of certain predictions are alike without
        found += copies <= n_copies(data.probs, data.labels) <= copies + (10 if shape < 1 else 0)
    assert found >= 19


def test_copies_of_many_rows_are_found_by_lot():
    rng = np.random.default_rng(0)
    p = rng.random(100_000)
    y = drawn(rng, p)
    rows = rng.permutation(np.append(np.arange(p.size), rng.choice(p.size, 2000, replace=False)))
    data = ct.Predictions.of(p[rows], y[rows])
    assert n_copies(data.probs, data.labels) == 2000
    assert n_copies(data.probs, rng.permutation(data.labels)) == 0
    for ties in (p.round(4), p.astype(np.float16).astype(float)):
        tied = ct.Predictions.of(ties, y)
        assert n_copies(tied.probs, tied.labels) == 0


def test_every_verb_tells_of_copies():
    rng = np.random.default_rng(2)
    p = np.tile(rng.random(100), 10)
    y = np.tile(drawn(rng, p[:100]), 10)
    few = {"n_resamples": 19, "rng": 0}
    results = [
        ct.calibration_test(p, y, **few),
        ct.joint_test(p, y, pairs=[(ct.ECE(), None), (ct.Kuiper(), None)], **few),
        ct.confidence_interval(p, y, n_resamples=99),
        ct.compare(p, p**2, y, **few),
        ct.audit(p, y, n_resamples=99, rng=0),
        ct.reliability_curve(p, y, **few),
        ct.brier_decomposition(p, y),
        ct.corp_decomposition(p, y),
        ct.cox_recalibration(p, y),
    ]
    for result in results:
        assert result.copies == 900
        assert "900 of 1000 rows repeat another" in str(result)
        assert type(result).from_json(result.to_json()).copies == 900
    doubt = "This is in doubt: 900 of 1000 rows repeat another"
    assert (results[4].summary[0][:49], str(results[4]).count("rows repeat")) == (doubt, 1)
    assert ct.confidence_interval(p, y, clusters=np.tile(np.arange(100), 10)).copies == 0
