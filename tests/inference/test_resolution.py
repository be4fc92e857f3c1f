"""Numbers of 32 and 16 bits give the p-values of the numbers that they round."""

import numpy as np
import pytest

import caltest as ct
from caltest.data import Predictions

STATISTICS = [
    ct.ECE(10), ct.ECE(ct.QuantileBins(5)), ct.ECE(ct.VarianceTree(5)),
    ct.ECE(ct.VarianceTree(5, split="mean")), ct.MCE(5), ct.CalibrationInTheLarge(),
    ct.KolmogorovSmirnov(), ct.Kuiper(), ct.Sweep(), ct.CORP(),
]  # fmt: skip


def bfloat16(p):
    bits = p.astype(np.float32).view(np.uint32)
    return ((bits + 0x7FFF + ((bits >> 16) & 1)) & np.uint32(0xFFFF0000)).view(np.float32)


def drawn(seed):
    """Small data: decimals of .1 to .0001, votes of an ensemble, or anything."""
    rng = np.random.default_rng(seed)
    n = int(rng.integers(8, 60))
    p = rng.beta(*rng.choice([0.3, 1.0, 2.0], 2), n)
    votes = int(rng.choice([3, 7, 30, 300]))
    kinds = [p.round(1), p.round(2), p.round(3), p.round(4), rng.binomial(votes, p) / votes, p]
    p = kinds[seed % 6]
    return p, (rng.random(n) < p).astype(int)


def moved(seed, n_resamples):
    """How far p moves from the numbers to their float32, by statistic and lens."""
    p, y = drawn(seed)
    run, stored = {"n_resamples": n_resamples, "rng": seed}, (p, p.astype(np.float32))
    for lens in (ct.OneVsRest(1), ct.TopK(1)):
        for statistic in STATISTICS:
            one, other = (ct.calibration_test(q, y, statistic, lens=lens, **run) for q in stored)
            yield abs(one.pvalue - other.pvalue)


@pytest.mark.parametrize(
    ("seeds", "draws", "room"),
    [(6, 49, 1e-6), pytest.param(400, 199, 1e-3, marks=pytest.mark.slow)],
)
def test_float32_gives_the_pvalues_of_its_original(seeds, draws, room):
    assert max(max(moved(seed, draws)) for seed in range(seeds)) < room


def test_decimals_and_votes_come_back_to_the_last_bit():
    for seed in range(400):
        if seed % 6 == 5:
            continue
        p, y = drawn(seed)
        for stored in (p.astype(np.float32), p.astype(np.float32).astype(float)):
            assert np.array_equal(Predictions.of(stored, y).probs, Predictions.of(p, y).probs)


def test_rows_of_decimals_are_not_renormalised():
    rng = np.random.default_rng(0)
    rows = rng.multinomial(1000, rng.dirichlet(np.ones(4), 200)) / 1000
    labels = rng.integers(4, size=200)
    data = Predictions.of(rows.astype(np.float32), labels)
    np.testing.assert_array_equal(data.probs, Predictions.of(rows, labels).probs)
    assert data.notes == ("float32 probabilities read as the short decimals that they round",)


@pytest.mark.parametrize(
    ("stored", "decimals"),
    [(lambda p: p.astype(np.float16), 3), (bfloat16, 2), (lambda p: p.astype(np.float16) * 1.0, 3)],
)
def test_sixteen_bits(stored, decimals):
    p = np.random.default_rng(1).random(60).round(decimals)
    np.testing.assert_array_equal(Predictions.of(stored(p), np.arange(60) % 2).probs[:, 1], p)


def test_rounding_of_64_bits_is_removed():
    p = np.array([1 - 0.7, 0.1 + 0.2, 0.3, 1 - 0.9])
    np.testing.assert_array_equal(Predictions.of(p, [0, 1, 0, 1]).probs[:, 1], [0.3, 0.3, 0.3, 0.1])


@pytest.mark.parametrize(
    "p",
    [
        np.random.default_rng(2).random(500),
        np.random.default_rng(2).random(500).astype(np.float32),
        np.random.default_rng(2).random(500).astype(np.float16),
        np.full(50, 537 / 1024),  # a base rate: it matches the mean label exactly
        np.full(50, 1147 / 4096, dtype=np.float32),  # also the float16 of .28
        np.arange(1, 128) / 128,
        np.random.default_rng(2).integers(1, 1024, 300) / 1024,
        np.array([1.25e-13, 3.7e-9, 0.1, 0.9]),
        np.array([1e-17, 1.0 - 1e-15, 0.5]),
    ],
)
def test_all_other_numbers_stay(p):
    data = Predictions.of(p, np.arange(len(p)) % 2)
    np.testing.assert_array_equal(data.probs[:, 1], p.astype(float))
    assert data.notes == ()
