"""Rows that a plan draws: what is predicted, what is true, and what may be wrong."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property
from math import ceil
from typing import Any

import numpy as np

from caltest._base.arrays import FloatArray, IntArray
from caltest._base.checks import fraction, number
from caltest._base.containers import as_ndarray
from caltest._base.facts import by_appearance
from caltest._base.written import name_of
from caltest.errors import StatisticError
from caltest.inference.admission import admitted, admitted_tally, tallies_of
from caltest.lenses import Lens, OneVsRest
from caltest.predictions import Facts, Predictions
from caltest.problem import problem_of_tally
from caltest.recalibration import PlattScaling, TemperatureScaling
from caltest.tally import AnyTally

#: Probabilities below this count as this in logarithms.
FLOOR = 2.0**-53


def _changed(probs: FloatArray, slope: float, shift: float | FloatArray = 0.0) -> FloatArray:
    from scipy.special import softmax

    return np.asarray(softmax(slope * np.log(np.maximum(probs, FLOOR)) + shift, axis=1))


@dataclass(frozen=True)
class Slope:
    """The true log-odds are ``slope`` times those predicted; below 1 a model is overconfident.

    At most 10. Of several classes, true probabilities are proportional to p^slope: temperature T is
    Slope(1/T).
    """

    slope: float

    def __post_init__(self) -> None:
        number("slope", self.slope, 0.0, 10.0)

    def __call__(self, probs: FloatArray) -> FloatArray:
        return _changed(probs, self.slope)


@dataclass(frozen=True)
class Shift:
    """The true log-odds of class ``c`` lie above those predicted by ``shift``."""

    shift: float
    c: int = 1

    def __call__(self, probs: FloatArray) -> FloatArray:
        return _changed(probs, 1.0, self.shift * (np.arange(probs.shape[1]) == self.c))


@dataclass(frozen=True)
class Bump:
    """Class ``c`` is more frequent by ``height`` where ``low`` < its prediction < ``high``."""

    height: float
    low: float
    high: float
    c: int = 1

    def __call__(self, probs: FloatArray) -> FloatArray:
        p = probs[:, self.c]
        q = np.clip(p + self.height * ((p > self.low) & (p < self.high)), 0.0, 1.0)
        others = np.where(np.arange(probs.shape[1]) == self.c, 0.0, probs)
        total = others.sum(axis=1, keepdims=True)
        rest = np.where(total > 0.0, others / np.maximum(total, FLOOR), 1.0 / (probs.shape[1] - 1))
        rest[:, self.c] = 0.0
        result = (1.0 - q)[:, None] * rest
        result[:, self.c] = q
        return result


@dataclass(frozen=True)
class LogisticNormal:
    """Risks of an event whose log-odds are normal: a model of which two numbers are known.

    ``rate`` is how often the event happens, ``concordance`` the c-statistic, or area under the ROC
    curve, ½ to 1. Mean and variance are those of Pavlou et al., "Estimation of required sample size
    for external validation of risk models for binary outcomes", Statistical Methods in Medical
    Research 30, 2021.
    """

    rate: float
    concordance: float

    def __post_init__(self) -> None:
        fraction("rate", self.rate)
        number("concordance", self.concordance, 0.5, 1.0)

    def of_normals(self, z: FloatArray) -> FloatArray:
        """Return the risks that belong to standard normal numbers."""
        from scipy.special import expit, ndtri

        apart = 2.0 * ndtri(self.concordance) ** 2
        mean = (self.rate - 0.5) * apart + np.log(self.rate / (1.0 - self.rate))
        variance = apart * (1.0 + apart * self.rate * (1.0 - self.rate))
        return np.asarray(expit(mean + np.sqrt(variance) * z))

    def __call__(self, rng: np.random.Generator, n: int) -> FloatArray:
        return self.of_normals(rng.standard_normal(n))


Truth = Callable[[FloatArray], FloatArray]
#: Rows from which formulas are computed where a model is drawn from.
MANY = 200_000
#: Rows, and rows of the rarer label, from which what is true can be learned.
LEAST, LEAST_RARE = 50, 10
#: Halvings of the correlation of labels, and data sets that show what it makes of them.
STEPS, DRAWS = 10, 20


@dataclass(frozen=True, eq=False)
class LikeTally:
    """Predictions of the event of a tally, drawn by how often its micro-cells have them."""

    n: int
    probs: FloatArray
    up_to: FloatArray

    def at(self, shares: FloatArray) -> FloatArray:
        """Return what is predicted up to such shares of the rows."""
        return self.probs[np.searchsorted(self.up_to, shares)]

    def __call__(self, rng: np.random.Generator, n: int) -> FloatArray:
        return self.at(rng.random(n))


@dataclass(frozen=True, eq=False)
class Population:
    """Predictions like those given, of a second model too, and the probabilities that are true."""

    like: Any
    data: Predictions | None
    against: Predictions | None
    truth: Truth | None
    assumed: str

    @classmethod
    def of(
        cls, like: object, labels: object, against: object, alternative: Truth | None, facts: Facts
    ) -> Population:
        """Read what is given; labels without an alternative show what is true."""
        if alternative is not None and not callable(alternative):
            raise StatisticError(
                f"alternative is a function from predicted to true probabilities, such as "
                f"planning.Slope(0.8), not {alternative!r}"
            )
        data = second = None
        assumed = "calibrated" if alternative is None else name_of(alternative)
        if tallies := tallies_of(like):
            like, rows = _of_tally(tallies[0], labels, facts)
            alternative, assumed = (alternative, assumed) if alternative else _fitted(rows, like.n)
        elif not callable(like):
            labelled = isinstance(like, Predictions) or labels is not None
            if not labelled:
                labels = np.zeros(np.shape(as_ndarray(like, "probs"))[:1], dtype=np.int64)
            data = admitted("plan", like, labels, facts, takes={"clusters"})
            if data.clusters is not None and not labelled:
                raise StatisticError("clusters show how much rows depend only beside labels")
            if against is not None:
                beside = None if isinstance(against, Predictions) else data.labels
                second = admitted("plan", against, beside, {})
                if second.probs.shape != data.probs.shape:
                    raise StatisticError("against: predictions of the same rows are needed")
            elif labelled and alternative is None:
                alternative, assumed = _fitted(replace(data, ids=None, clusters=None), data.n)
        if against is not None and second is None:
            raise StatisticError(
                "a comparison is planned like predictions, not like a function or a tally"
            )
        assumed = "the other model" if against is not None and alternative is None else assumed
        return cls(like, data, second, alternative, assumed)

    @property
    def present(self) -> int | None:
        """The rows that were given."""
        source = self.like if isinstance(self.like, LikeTally) else self.data
        return None if source is None else source.n

    def probs(self, rng: np.random.Generator, n: int) -> tuple[FloatArray, FloatArray]:
        """Draw n rows of predictions, and the probabilities that are true of them."""
        if self.data is None:
            probs = Predictions.of(self.like(rng, n), np.zeros(n, dtype=np.int64)).probs
            return probs, self._true(probs)
        rows = rng.integers(self.data.n, size=n)
        probs = self.data.probs[rows]
        return probs, self._true(probs if self.against is None else self.against.probs[rows])

    def _true(self, probs: FloatArray) -> FloatArray:
        return probs if self.truth is None else np.asarray(self.truth(probs))

    def draw(self, rng: np.random.Generator, n: int) -> tuple[Predictions, Predictions | None]:
        """Draw n rows with their labels; the second model predicts the same rows."""
        if self.clustered:
            assert self.data is not None
            rows, clusters = self._clusters(rng, n)
            probs = self.data.probs[rows]
            labels = _labels(rng, self._true(probs), clusters, self.dependence[1])
            return Predictions(probs, labels, clusters=clusters), None
        seed = rng.integers(2**63)
        probs, truth = self.probs(np.random.default_rng(seed), n)
        uniform = rng.random(n)[:, None]
        labels = (uniform >= np.cumsum(truth, axis=1)[:, :-1]).sum(axis=1)
        if self.against is None:
            return Predictions(probs, labels), None
        rows = np.random.default_rng(seed).integers(self.against.n, size=n)
        return Predictions(probs, labels), Predictions(self.against.probs[rows], labels)

    @property
    def clustered(self) -> bool:
        """Whether rows come in clusters."""
        return self.data is not None and self.data.clusters is not None

    @cached_property
    def dependence(self) -> tuple[float, float]:
        """The design effect of clusters, and the latent correlation of their labels that has it.

        The effect is Σ over clusters of (Σ r)² against Σ r², r = y − q of class 1 or the likeliest,
        at least 1. Labels are cut from normal variables of one correlation within a cluster, which
        keeps the chances of every row; it is found by bisection on the same draws.
        """
        data = self.data
        if data is None or data.clusters is None:
            return 1.0, 0.0
        truth, clusters = self._true(data.probs), by_appearance(data.clusters)
        event = 1 if data.n_classes == 2 else data.probs.argmax(axis=1)
        likely = truth[np.arange(data.n), event]

        def effect(labels: IntArray) -> float:
            residuals = (labels == event) - likely
            return float((np.bincount(clusters, residuals) ** 2).sum() / (residuals**2).sum())

        observed, low, high = max(1.0, effect(data.labels)), 0.0, 1.0
        for _ in range(STEPS if observed > 1.0 else 0):
            middle, rng = (low + high) / 2.0, np.random.default_rng(0)
            effects = [effect(_labels(rng, truth, clusters, middle)) for _ in range(DRAWS)]
            low, high = (middle, high) if np.mean(effects) < observed else (low, middle)
        return observed, low

    def _clusters(self, rng: np.random.Generator, n: int) -> tuple[IntArray, IntArray]:
        """Draw clusters until there are n rows: which rows they are, and their clusters."""
        assert self.data is not None
        clusters = by_appearance(self.data.clusters)
        order = np.argsort(clusters, kind="stable")
        ends = np.cumsum(np.bincount(clusters))
        few = ceil(2.0 * n * ends.size / ends[-1]) + 10
        chosen = rng.integers(ends.size, size=few)
        sizes = np.diff(np.append(0, ends))[chosen]
        chosen = chosen[: int(np.searchsorted(np.cumsum(sizes), n)) + 1]
        parts = [order[(ends[c - 1] if c else 0) : ends[c]] for c in chosen]
        numbers = np.repeat(np.arange(len(parts)), [part.size for part in parts])
        return np.concatenate(parts)[:n], numbers[:n]

    def event(self, lens: Lens, rng: np.random.Generator) -> tuple[FloatArray, FloatArray]:
        """Return predictions of the event that a lens shows, and how likely it is, for formulas."""
        shares = (np.arange(MANY) + 0.5) / MANY
        if isinstance(self.like, LogisticNormal):
            from scipy.special import ndtri

            p = self.like.of_normals(ndtri(shares))
            probs = np.column_stack([1.0 - p, p])
        elif isinstance(self.like, LikeTally):
            probs = self.like.at(shares)
        else:
            probs = self.probs(rng, MANY)[0] if self.data is None else self.data.probs
        truth = self._true(probs)
        likely = np.zeros(len(probs))
        for k in range(probs.shape[1]):
            induced = lens(Predictions(probs, np.full(len(probs), k)))
            likely += np.where(induced.labels == 0, truth[:, k], 0.0)
        if induced.n_classes != 2:
            raise StatisticError(f"{lens!r} shows no event: take OneVsRest(c) or TopK(1)")
        return induced.probs[:, 0], likely

    def __str__(self) -> str:
        if self.present is None:
            return repr(self.like) if isinstance(self.like, LogisticNormal) else "a function"
        return f"{self.present} rows"


def _labels(
    rng: np.random.Generator, truth: FloatArray, clusters: IntArray, correlation: float
) -> IntArray:
    """Draw labels of given chances from normal variables that are correlated within clusters."""
    from scipy.special import ndtr

    shared = rng.standard_normal(int(clusters.max()) + 1)[clusters]
    latent = np.sqrt(correlation) * shared
    latent += np.sqrt(1.0 - correlation) * rng.standard_normal(clusters.size)
    above = ndtr(latent)[:, None] >= np.cumsum(truth, axis=1)[:, :-1]
    return above.sum(axis=1)


def _of_tally(tally: AnyTally, labels: object, facts: Facts) -> tuple[LikeTally, Predictions]:
    """Return predictions to be drawn from, and rows, each of a weight, that a map is fitted to."""
    if tally.n_classes > 2 or tally.weights is not None:
        raise StatisticError("plan takes tallies of two classes, and none of weighted rows")
    problem = problem_of_tally(admitted_tally("plan", tally, labels, facts, OneVsRest(1)))
    probs, each = problem.quadrature
    up_to = np.cumsum(each)
    like = LikeTally(problem.n, probs[:, ::-1], up_to / up_to[-1])
    rows, times, _ = problem.expand()
    return like, Predictions(rows.probs[:, ::-1], 1 - rows.labels, weights=times)


def _fitted(data: Predictions, n: int) -> tuple[Truth, str]:
    """Return what the labels say is true, if they are enough to say it."""
    each = np.bincount(data.labels, data.weights, data.n_classes)
    if n < LEAST or (data.n_classes == 2 and each.min() < LEAST_RARE):
        raise StatisticError(
            f"{n} rows, {each.min():.0f} of the rarest label, are too few to learn from what is "
            f"true of the model; it takes {LEAST}, of two classes {LEAST_RARE} of either label. "
            "Say it instead, such as alternative=planning.Slope(0.8)"
        )
    method = PlattScaling() if data.n_classes == 2 else TemperatureScaling()
    return method.fit(data), f"{method!r}, fitted to the labels"
