"""Data whose binned error is known: predictions, and the probabilities labels are drawn from."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.special import expit, logit, ndtr

import caltest as ct
from validation import draws
from validation.draws import binary, dirichlet
from validation.draws import two_classes as two


@dataclass(frozen=True)
class Scenario:
    """Predictions of n rows, the probabilities of their labels, and how they are looked at.

    Labels of a cluster of rows share a part of their chance: half of it on a normal scale, or all
    of it for copies.
    """

    name: str
    n: int
    bins: Any
    draw: Callable[[np.random.Generator, int], np.ndarray]
    truth: Callable[[np.ndarray], np.ndarray]
    lens: Any = ct.OneVsRest(1)
    cluster: int = 1
    shared: float = 0.5
    bootstrap: bool = True

    @property
    def key(self) -> str:
        return f"{self.name}, {self.bins!r}, n={self.n}"

    @property
    def fixed(self) -> bool:
        """Whether cells do not depend on the sample."""
        return isinstance(self.bins, ct.UniformBins)

    def __call__(self, rng: np.random.Generator) -> tuple[ct.Predictions, np.ndarray]:
        """Draw rows, and the probabilities of their labels."""
        size = self.cluster if self.shared == 1.0 else 1
        probs = np.repeat(self.draw(rng, self.n // size), size, axis=0)
        q = self.truth(probs)
        u, clusters = rng.random(self.n), None
        if self.cluster > 1:
            clusters = np.arange(self.n) // self.cluster
            common, own = rng.standard_normal(self.n)[clusters], rng.standard_normal(self.n)
            u = ndtr(self.shared**0.5 * common + (1.0 - self.shared) ** 0.5 * own)
        cumulative = np.cumsum(q, axis=1)
        cumulative[:, -1] = np.inf
        labels = (u[:, None] >= cumulative).sum(axis=1)
        return ct.Predictions.of(probs, labels, clusters=clusters, as_is=True), q


def middling(rng, n):
    return rng.uniform(0.3, 0.7, n)


def sure(rng, n):
    return 1.0 - 0.5 * rng.beta(0.3, 10.0, n)


def nearly_never(rng, n):
    return rng.uniform(0.001, 0.003, n)


def gross(share, rng, n):
    """A few rows predicted .95, one at least; the rate is .005."""
    wrong = rng.random(n) < share
    while not wrong.any():
        wrong = rng.random(n) < share
    return np.where(wrong, 0.95, 0.005)


def calibrated(probs):
    return probs


def slope(s, probs):
    return two(expit(s * logit(np.clip(probs[:, 1], 1e-12, 1.0 - 1e-12))))


def shifted(a, probs):
    return two(np.clip(probs[:, 1] + a, 0.0, 1.0))


def bump(low, high, a, probs):
    p = probs[:, 1]
    return two(np.where((p > low) & (p <= high), np.clip(p + a, 0.0, 1.0), p))


def times(factor, probs):
    return two(np.minimum(factor * probs[:, 1], 1.0))


def always(rate, probs):
    return two(np.full(len(probs), rate))


def rates(p, q, probs):
    """Two predictions, each with a rate of its own."""
    return two(np.where(np.abs(probs[:, 1] - p[0]) < 1e-9, *q))


def exchanged(total, probs):
    """Of two predictions, each has the other's rate: errors cancel in a cell of both."""
    return two(total - probs[:, 1])


def mixed(share, probs):
    return (1.0 - share) * probs + share / probs.shape[1]


U, Q, TREE = ct.UniformBins, ct.QuantileBins, ct.VarianceTree
UNIFORM, CONFIDENT = partial(binary, draws.uniform), partial(binary, draws.confident)
DIR3, DIR10 = partial(dirichlet, 1.0, 3), partial(dirichlet, 0.1, 10)
TOP, WHOLE = {"lens": ct.TopK(1)}, {"lens": ct.Canonical()}


def one_value(p, rate, n):
    draw = partial(binary, partial(draws.constant, p))
    return Scenario(f"one value {p:g}, rate {rate:g}", n, U(15), draw, partial(always, rate))


def values(name, choices, truth, n, bins):
    return Scenario(name, n, bins, partial(binary, partial(draws.values, choices)), truth)


def two_rates(name, p, q, share, n):
    """Two predictions with rates of their own, the first in a share of the rows."""
    draw = partial(binary, partial(draws.two_values, p, share))
    return Scenario(name, n, U(15), draw, partial(rates, p, q), bootstrap=False)


def rare(name, shape, truth, n):
    return Scenario(name, n, U(15), partial(binary, partial(draws.gamma, shape, 0.02)), truth)


FIVE = (0.1, 0.3, 0.5, 0.6, 0.8)
SCENARIOS = [
    Scenario("calibrated, uniform", 200, U(15), UNIFORM, calibrated),
    Scenario("calibrated, uniform", 500, U(2), UNIFORM, calibrated),
    Scenario("calibrated, uniform", 2000, U(50), UNIFORM, calibrated),
    Scenario("calibrated, uniform", 3000, U(15), UNIFORM, calibrated),
    Scenario("calibrated, very confident", 200, U(15), CONFIDENT, calibrated),
    Scenario("slope 0.9", 2000, U(15), UNIFORM, partial(slope, 0.9)),
    Scenario("slope 0.5", 500, U(15), UNIFORM, partial(slope, 0.5)),
    Scenario("slope 0.5", 3000, U(15), UNIFORM, partial(slope, 0.5)),
    Scenario("slope 3, sparse cells", 200, U(50), UNIFORM, partial(slope, 3.0)),
    Scenario("slope 0.5, cells of one row", 200, U(1000), UNIFORM, partial(slope, 0.5)),
    Scenario("shift 0.1", 1000, U(10), partial(binary, middling), partial(shifted, 0.1)),
    Scenario("one cell in twenty wrong", 2000, U(50), UNIFORM, partial(bump, 0.9, 0.95, -0.3)),
    Scenario("very confident, slope 0.8", 200, U(50), CONFIDENT, partial(slope, 0.8)),
    Scenario("nearly sure, slope 0.5", 200, U(2), partial(binary, sure), partial(slope, 0.5)),
    Scenario("half of all far off", 3000, U(2), UNIFORM, partial(bump, 0.5, 1.0, -0.45)),
    Scenario("equal mass, slope 0.8", 1000, Q(15), CONFIDENT, partial(slope, 0.8)),
    Scenario("hundredths in 32 bits, slope 0.5", 500, U(15),
             partial(binary, partial(draws.single, 2)), partial(slope, 0.5)),
    Scenario("rate .0125, risk doubled", 1000, U(50), partial(binary, draws.rare),
             partial(times, 2.0)),
    rare("rate .01, calibrated", 0.5, calibrated, 2000),
    rare("rate .01, risk doubled", 0.5, partial(times, 2.0), 2000),
    rare("rate .004, risk halved", 0.2, partial(times, 0.5), 3000),
    Scenario(".003 of rows grossly wrong", 1000, U(15), partial(binary, partial(gross, 0.003)),
             partial(always, 0.005)),
    Scenario(".02 of rows grossly wrong", 100, U(15), partial(binary, partial(gross, 0.02)),
             partial(always, 0.005)),
    one_value(0.1, 0.1, 20),
    one_value(0.02, 0.03, 50),
    one_value(0.02, 0.03, 200),
    one_value(0.9, 0.85, 20),
    one_value(0.95, 0.97, 100),
    values("two values, too low by .1", (0.2, 0.7), partial(shifted, 0.1), 50, U(15)),
    values("five values, too low by .1", FIVE, partial(shifted, 0.1), 100, U(15)),
    values(".02 and .98 exchanged, one cell", (0.02, 0.98), partial(exchanged, 1.0), 200, U(1)),
    values(".01 and .49 exchanged, one cell", (0.01, 0.49), partial(exchanged, 0.5), 200, U(1)),
    two_rates(".498 and .304, always", (0.498, 0.304), (1.0, 1.0), 0.5, 10),
    two_rates(".498 and .304, rate .97", (0.498, 0.304), (0.97, 0.97), 0.5, 10),
    two_rates(".03 of rows far off, .1", (0.9, 0.1), (0.1, 0.1), 0.03, 300),
    two_rates(".03 of rows far off, .3", (0.9, 0.3), (0.1, 0.3), 0.03, 300),
    Scenario("near 0, nearly always", 20, U(10), partial(binary, nearly_never),
             partial(always, 0.97), bootstrap=False),
    Scenario("near 0, nearly always", 50, U(10), partial(binary, nearly_never),
             partial(always, 0.97), bootstrap=False),
    Scenario("3 classes, top one, mixed 0.2", 500, U(15), DIR3, partial(mixed, 0.2), **TOP),
    Scenario("3 classes, whole, calibrated", 500, TREE(50), DIR3, calibrated, **WHOLE),
    Scenario("3 classes, whole, mixed 0.2", 2000, U(5), DIR3, partial(mixed, 0.2), **WHOLE),
    Scenario("10 classes, top one, mixed 0.1", 1000, U(15), DIR10, partial(mixed, 0.1), **TOP),
    Scenario("10 classes, whole, calibrated", 1000, TREE(50), DIR10, calibrated, **WHOLE,
             bootstrap=False),
    Scenario("10 classes, whole, mixed 0.1", 3000, TREE(100), DIR10, partial(mixed, 0.1), **WHOLE,
             bootstrap=False),
    Scenario("10 classes, top three, mixed 0.1", 2000, TREE(100), DIR10, partial(mixed, 0.1),
             ct.TopK(3), bootstrap=False),
    Scenario("calibrated, clusters of 5", 1000, U(15), UNIFORM, calibrated, cluster=5),
    Scenario("slope 0.5, clusters of 5", 1000, U(15), UNIFORM, partial(slope, 0.5), cluster=5),
    Scenario("slope 0.5, copies of 5, clusters", 1000, U(15), UNIFORM, partial(slope, 0.5),
             cluster=5, shared=1.0),
]  # fmt: skip
