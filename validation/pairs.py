"""Pairs of models whose calibration errors are known to be equal, or known to differ."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
from scipy.special import expit, ndtr, softmax

import caltest as ct
from validation.draws import gamma, labels_from
from validation.draws import two_classes as two

Draw = Callable[[np.random.Generator, int], tuple[np.ndarray, np.ndarray, np.ndarray]]


@dataclass(frozen=True)
class Pair:
    """Two models on the same rows: a function of (rng, n) to (probs_a, probs_b, labels)."""

    name: str
    kind: str  # "calibrated", "equal" error, "rare" equal error, or "unequal"
    draw: Draw
    n: int
    lens: ct.Lens = ct.OneVsRest(1)
    bins: object = ct.UniformBins(15)
    paired: bool = True

    @property
    def key(self) -> str:
        return f"{self.name}, n={self.n}"

    def __call__(self, rng: np.random.Generator) -> tuple[ct.Predictions, ct.Predictions]:
        """Draw both models and look through the lens."""
        a, b, labels = self.draw(rng, self.n)
        labels_b = labels
        if not self.paired:
            _, b, labels_b = self.draw(rng, self.n)
        return self.lens(ct.Predictions.of(a, labels, as_is=True)), self.lens(
            ct.Predictions.of(b, labels_b, as_is=True)
        )


def probit(rng, latent):
    return (latent + rng.normal(size=latent.size) > 0.0).astype(np.int64)


def own_features(slope, rng, n):
    """Exchangeable models, each of its own feature; calibrated for slope 1."""
    u, w = rng.normal(size=(2, n))
    return two(ndtr(slope * u / 2**0.5)), two(ndtr(slope * w / 2**0.5)), probit(rng, u + w)


def sharp_and_vague(slope, shift, rng, n):
    u, w = 0.3 * rng.normal(size=n), 2.0 * rng.normal(size=n)
    return two(ndtr(slope * (u + w))), two(ndtr(u / 5**0.5 + shift)), probit(rng, u + w)


def nearly_the_same(rng, n):
    u, w = rng.normal(size=n), 0.3 * rng.normal(size=n)
    return two(ndtr(u + w)), two(ndtr(u / 1.09**0.5)), probit(rng, u + w)


def the_same_but_rounding(rng, n):
    """Two models that differ by noise of 1e-9."""
    p = rng.uniform(0.01, 0.99, n)
    return two(p), two(p + 1e-9 * rng.normal(size=n)), rng.binomial(1, p)


def steep_and_shifted(rng, n):
    u = rng.normal(size=n)
    return two(ndtr(1.3 * u)), two(ndtr(u + 0.14781)), probit(rng, u)


def mirrored(shift, scale, rng, n):
    """Mirror images: equal errors of opposite sign on every bin."""
    u = scale * rng.normal(size=n)
    return two(ndtr(u + shift)), two(ndtr(u - shift)), probit(rng, u)


def confident(rng, n):
    u, w = 2.5 * rng.normal(size=n) + 2.0, 1.5 * rng.normal(size=n)
    return two(ndtr(u + w)), two(ndtr(u / 3.25**0.5)), probit(rng, u + w)


def slopes(a, b, rng, n):
    """Probit models that are too flat (below 1) or too steep."""
    u = rng.normal(size=n)
    return two(ndtr(a * u)), two(ndtr(b * u)), probit(rng, u)


def logit_slopes(a, b, rng, n):
    u = rng.logistic(size=n)
    return two(expit(a * u)), two(expit(b * u)), rng.binomial(1, expit(u))


def noisy_logits(n_classes, sharpness, slopes, rng, n):
    """Softmax models of the same classes, each with noise of its own."""
    logits = sharpness * rng.normal(size=(n, n_classes))
    labels = labels_from(softmax(logits, axis=1), rng)
    a, b = (
        softmax(slope * (logits + 0.5 * rng.normal(size=logits.shape)), axis=1) for slope in slopes
    )
    return a, b, labels


def mixed_truth(share, rng, n):
    """Calibrated against shrunk or sharpened Dirichlet predictions of three classes."""
    truth = rng.dirichlet(np.ones(3), n)
    return truth, (1.0 - share) * truth + share / 3.0, labels_from(truth, rng)


def rare_and_constant(shape, scale, rng, n):
    """A sharp model of a rare event and its base rate, both calibrated."""
    q = gamma(shape, scale, rng, n)
    return two(q), two(np.full(n, shape * scale)), rng.binomial(1, q)


def rare_and_doubled(rng, n):
    q = np.minimum(gamma(0.5, 0.02, rng, n), 0.45)
    return two(q), two(2.0 * q), rng.binomial(1, q)


def copied(pair, copies, rng, n):
    """Every row several times, as if it were new."""
    return tuple(np.repeat(x, copies, axis=0) for x in pair(rng, n // copies))


def gross(share, rng, n):
    """A few rows predicted .95 by mistake, one at least, and a constant of equal squared error.

    The event has rate .005 in all rows.
    """
    wrong = rng.random(n) < share
    while not wrong.any():
        wrong = rng.random(n) < share
    a, b = np.where(wrong, 0.95, 0.005), np.full(n, 0.005 + 0.945 * share**0.5)
    return two(a), two(b), rng.binomial(1, 0.005, n)


def one_cell(share, gap, rng, n):
    """One wrong by ``gap`` in a cell of its own, one wrong everywhere, by as much together."""
    bad = rng.random(n) < share
    q = np.where(bad, 0.633 - gap, rng.uniform(0.02, 0.58, n))
    a, b = np.where(bad, 0.633, q), q + gap * share**0.5
    return two(a), two(b), rng.binomial(1, q)


def few_values(count, rng, n):
    """Predictions of few distinct values, too high and too low by as much."""
    q = np.linspace(0.2, 0.8, count)[rng.integers(0, count, n)]
    return two(q + 0.1), two(q - 0.1), rng.binomial(1, q)


def in_single(pair, rng, n):
    a, b, labels = pair(rng, n)
    return a.astype(np.float32), b.astype(np.float32), labels


U, Q, CELL = ct.UniformBins, ct.QuantileBins, ct.VarianceTree(20)
SIZES = (200, 500, 2000, 3000)
UP_TO_2000 = SIZES[:3]
OWN, SHARP = partial(own_features, 1.0), partial(sharp_and_vague, 1.0, 0.0)
MIRRORED, BOTH_STEEP = partial(mirrored, 0.2, 1.0), partial(own_features, 1.5)
TOP, OTHER_ROWS = {"lens": ct.TopK(1)}, {"paired": False}


def pairs(kind, name, draw, sizes, **options):
    return [Pair(name, kind, draw, n, **options) for n in sizes]


CALIBRATED = [
    *pairs("calibrated", "own features (S0)", OWN, SIZES),
    *pairs("calibrated", "sharp and vague (S1)", SHARP, SIZES),
    *pairs("calibrated", "nearly the same model", nearly_the_same, SIZES),
    *pairs("calibrated", "the same model but for 1e-9", the_same_but_rounding, (200, 2000)),
    *pairs("calibrated", "very confident", confident, SIZES),
    *pairs("calibrated", "sharp and vague, equal-mass bins", SHARP, SIZES, bins=Q(15)),
    *pairs("calibrated", "sharp and vague, 50 bins", SHARP, (200, 1000), bins=U(50)),
    *pairs("calibrated", "sharp and vague, 100 bins", SHARP, (200,), bins=U(100)),
    *pairs("calibrated", "sharp and vague, 1000 bins", SHARP, (2000,), bins=U(1000)),
    *pairs("calibrated", "sharp and vague, 32 bits", partial(in_single, SHARP), (500,)),
    *pairs("calibrated", "sharp and vague, other rows", SHARP, UP_TO_2000, **OTHER_ROWS),
]
#: How wrong in one cell, its share of the rows, and the number of rows.
ONE_CELL = [
    (0.133, 0.1, 200), (0.3, 0.1, 200), (0.133, 0.02, 500), (0.3, 0.02, 500), (0.116, 0.07, 400),
    (0.116, 0.03, 2000), (0.3, 0.005, 2000), (0.2, 0.02, 2000), (0.133, 0.0021, 20_000),
    (0.133, 0.0042, 20_000), (0.3, 0.001, 20_000), (0.2, 0.01, 20_000),
]  # fmt: skip
MULTICLASS = [
    *pairs("equal", "10 classes, top class, both overconfident",
           partial(noisy_logits, 10, 2.0, (2.0, 2.0)), SIZES, **TOP),
    *pairs("equal", "10 classes, top class, nearly calibrated",
           partial(noisy_logits, 10, 2.0, (0.8, 0.8)), SIZES, **TOP),
    *pairs("equal", "100 classes, top class, both overconfident",
           partial(noisy_logits, 100, 2.0, (1.5, 1.5)), (200, 1000), **TOP),
    *pairs("equal", "10 classes, two largest, both overconfident",
           partial(noisy_logits, 10, 2.0, (1.5, 1.5)), UP_TO_2000, lens=ct.TopK(2), bins=U(5)),
    *pairs("equal", "3 classes, whole vector, both overconfident",
           partial(noisy_logits, 3, 1.0, (1.5, 1.5)), UP_TO_2000, lens=ct.Canonical(), bins=CELL),
]  # fmt: skip
EQUAL = [
    *pairs("equal", "steep and shifted (S2)", steep_and_shifted, SIZES),
    *pairs("equal", "sharp and vague, both wrong (S5)",
           partial(sharp_and_vague, 1.3, 0.08777), SIZES),
    *pairs("equal", "own features, both steep", BOTH_STEEP, SIZES),
    *pairs("equal", "too high and too low by 0.2", MIRRORED, SIZES),
    *pairs("equal", "too high and too low by 0.5", partial(mirrored, 0.5, 1.0), SIZES),
    *pairs("equal", "too high and too low by 0.2, 50 bins", MIRRORED, (200, 1000), bins=U(50)),
    *pairs("equal", "too high and too low by 0.2, 100 bins", MIRRORED, (200,), bins=U(100)),
    *pairs("equal", "too high and too low by 0.2, 1000 bins", MIRRORED, (2000,), bins=U(1000)),
    *pairs("equal", "very confident, too high and too low", partial(mirrored, 0.4, 3.0), SIZES),
    *pairs("equal", "too high and too low, equal-mass bins", MIRRORED, SIZES, bins=Q(15)),
    *pairs("equal", "two distinct values, too high and too low", partial(few_values, 2),
           (50, 200, 1000)),
    *pairs("equal", "five distinct values, too high and too low", partial(few_values, 5),
           (50, 200, 1000)),
    *[
        Pair(f"wrong by {gap} in {share:g} of rows, and everywhere", "equal",
             partial(one_cell, share, gap), n)
        for gap, share, n in ONE_CELL
    ],
    *MULTICLASS,
    *pairs("equal", "own features, both steep, other rows", BOTH_STEEP, UP_TO_2000, **OTHER_ROWS),
]  # fmt: skip
HALF, FIFTH = partial(rare_and_constant, 0.5, 0.02), partial(rare_and_constant, 0.2, 0.02)
RARE = [
    *pairs("rare", "rate .01, sharp and constant", HALF, (1000, 2000, 3000, 5000)),
    *pairs("rare", "rate .004, sharp and constant", FIFTH, (1000, 3000)),
    *pairs("rare", "rate .05, sharp and constant", partial(rare_and_constant, 0.5, 0.1),
           (200, 1000, 3000)),
    *pairs("rare", "rate .01, sharp and constant, other rows", HALF, (2000,), **OTHER_ROWS),
    *pairs("rare", "rate .01, sharp and constant, equal-mass bins", HALF, (2000,), bins=Q(15)),
    *pairs("rare", "rate .01, sharp and constant, 32 bits", partial(in_single, HALF), (2000,)),
    *pairs("rare", ".001 of rows grossly wrong", partial(gross, 0.001), (1000, 3000)),
    *pairs("rare", ".003 of rows grossly wrong", partial(gross, 0.003), (300, 1000, 3000)),
    *pairs("rare", ".003 of rows grossly wrong, other rows", partial(gross, 0.003), (1000,),
           **OTHER_ROWS),
    *pairs("rare", ".02 of rows grossly wrong", partial(gross, 0.02), (100, 300)),
]  # fmt: skip
COPIES = [
    *pairs("copies", "own features, both steep, once", BOTH_STEEP, (100,)),
    *pairs("copies", "own features, both steep, each row twice", partial(copied, BOTH_STEEP, 2),
           (200,)),
    *pairs("copies", "own features, both steep, each row ten times",
           partial(copied, BOTH_STEEP, 10), (1000,)),
]  # fmt: skip
UNEQUAL = [
    *pairs("unequal", "right and steep by 1.3 (P3)", partial(slopes, 1.0, 1.3), SIZES),
    *pairs("unequal", "right and steep by 1.6", partial(slopes, 1.0, 1.6), SIZES),
    *pairs("unequal", "right and steep by 1.6, other rows", partial(slopes, 1.0, 1.6),
           UP_TO_2000, **OTHER_ROWS),
    *pairs("unequal", "logit slopes 0.6 and 1", partial(logit_slopes, 0.6, 1.0), (200, 500, 1000)),
    *pairs("unequal", "logit slopes 0.6 and 1, other rows", partial(logit_slopes, 0.6, 1.0),
           (500,), **OTHER_ROWS),
    *pairs("unequal", "logit slopes 0.7 and 0.9", partial(logit_slopes, 0.7, 0.9), (2000,)),
    *pairs("unequal", "rate .01, right and twice too high", rare_and_doubled, (1000, 3000)),
    *pairs("unequal", "10 classes, top class, slopes 0.8 and 1.2",
           partial(noisy_logits, 10, 2.0, (0.8, 1.2)), SIZES, **TOP),
    *pairs("unequal", "3 classes, whole vector, right and shrunk", partial(mixed_truth, 0.3),
           UP_TO_2000, lens=ct.Canonical(), bins=U(4)),
]  # fmt: skip
PAIRS = {pair.key: pair for pair in [*CALIBRATED, *EQUAL, *RARE, *COPIES, *UNEQUAL]}
