"""Null distributions, exact, simulated or asymptotic, and exact laws of counts.

Every law has ``mean``, ``std``, ``sf``, ``ppf`` and ``rvs``. :func:`poisson_binomial` computes the
law of a sum of unequal Bernoulli trials.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from functools import cache
from typing import Any, Literal

import numpy as np
from numpy.fft import irfft
from numpy.typing import ArrayLike, DTypeLike

from caltest._base.arrays import RNG, AnyArray, ComplexArray, FloatArray, IntArray, below, reaching
from caltest.results import ClusterSummary, HorizonSummary
from caltest.results.hypotheses import NullDistribution


@dataclass(frozen=True, eq=False)
class SimulatedNull(NullDistribution):
    """Null distribution given by B simulated replicates; ``np.asarray`` returns them.

    ``values`` (B,) are in the order in which they were drawn; ``ended`` is "complete", or "early"
    (sequential stopping) or "interrupted" (Ctrl-C); ``clusters`` describe the dependence that the
    replicates allow for, None without.
    """

    values: FloatArray = field(repr=False)
    ended: Literal["complete", "early", "interrupted"] = "complete"
    clusters: ClusterSummary | HorizonSummary | None = None

    def mean(self) -> float:
        return float(self.values.mean())

    def std(self) -> float:
        return float(self.values.std())

    def sf(self, t: float) -> float:
        return float(reaching(t, self.values).mean())

    def ppf(self, q: float) -> float:
        return float(np.quantile(self.values, q, method="inverted_cdf"))

    def rvs(self, size: int, rng: RNG = None) -> FloatArray:
        return np.random.default_rng(rng).choice(self.values, size)

    def __array__(self, dtype: DTypeLike | None = None, copy: bool | None = None) -> AnyArray:
        if copy is None:  # which NumPy before 2 does not know
            return np.asarray(self.values, dtype=dtype)
        return np.array(self.values, dtype=dtype, copy=copy)

    def __len__(self) -> int:
        return self.values.size


@dataclass(frozen=True, eq=False)
class ExactNull(NullDistribution):
    """Null distribution of a statistic T that was computed, not simulated.

    ``support`` (m,) are increasing values of T, ``tail`` (m,) P(T ≥ support[j]) for T rounded to
    the support, ``lower`` P(T ≤ support[j]), which the tail gives to no more than 16 decimals, None
    if unknown. ``slack`` is how far rounding can have moved a value of T (0 when the support is
    exact; ``slack_beyond`` from ``edge`` on, where it becomes coarser), ``error`` a bound on the
    error of every probability in the tail. ``expectation`` and ``deviation`` are the mean and the
    standard deviation of T.
    """

    support: FloatArray = field(repr=False)
    tail: FloatArray = field(repr=False)
    expectation: float
    deviation: float
    slack: float = 0.0
    error: float = 0.0
    lower: FloatArray | None = field(default=None, repr=False)
    edge: float = np.inf
    slack_beyond: float = 0.0

    def mean(self) -> float:
        return self.expectation

    def std(self) -> float:
        return self.deviation

    def bracket(
        self, t: float, two_sided: bool = False, centre: float = 0.0
    ) -> tuple[float, float]:
        """Return (low, high), probabilities between which P(T ≥ t) lies, T being the statistic.

        With ``two_sided`` it is P(|T − c| ≥ |t − c|), c the ``centre``. Rounding to the grid is
        bounded exactly, floating-point error by a measured allowance.
        """
        if two_sided:
            moved = replace(self, support=self.support - centre)
            sides = [law.bracket(abs(t - centre)) for law in (moved, moved._mirrored())]
            return min(sum(low for low, _ in sides), 1.0), min(sum(high for _, high in sides), 1.0)
        # Likely values set the scale of rounding: others may be larger by any factor.
        threshold = below(t, np.array([self.ppf(1e-4), self.ppf(1.0 - 1e-4)]))
        slack = self.slack if threshold <= self.edge else self.slack_beyond
        lower = self._tail_from(threshold + slack) - self.error
        upper = self._tail_from(threshold - slack) + self.error
        return min(max(lower, 0.0), 1.0), min(upper, 1.0)

    def sf(self, t: float) -> float:
        """Return P(T ≥ ``t``) of the statistic T, the upper end of its bracket."""
        return self.bracket(t)[1]

    def _mirrored(self) -> ExactNull:
        """Return the null distribution of −T, with T the statistic of this one."""
        lower, error = self.lower, self.error
        if lower is None:
            lower = np.clip(1.0 - np.append(self.tail[1:], 0.0), 0.0, 1.0)
            error += 1e-15
        slack = max(self.slack, self.slack_beyond)
        return ExactNull(
            -self.support[::-1], lower[::-1], -self.expectation, self.deviation, slack, error
        )

    def _tail_from(self, t: float) -> float:
        # t itself carries rounding: a support point may be short of it by an ulp or two.
        j = int(np.searchsorted(self.support, t - 4e-16 * abs(t), side="left"))
        return float(self.tail[j]) if j < self.tail.size else 0.0

    def ppf(self, q: float) -> float:
        """Return the ``q``-quantile, a value of the statistic, exact to within ``slack``."""
        exceed = np.append(self.tail[1:], 0.0)  # P(T > support[j])
        j = int(np.searchsorted(-exceed, -(1.0 - q) - 1e-15, side="left"))
        return float(self.support[min(j, self.support.size - 1)])

    def rvs(self, size: int, rng: RNG = None) -> FloatArray:
        u = np.random.default_rng(rng).random(size)
        return self.support[np.searchsorted(-self.tail, -u, side="right") - 1]


@dataclass(frozen=True, eq=False)
class RootNull(ExactNull):
    """Null distribution of √T for a statistic T ≥ 0 whose law was computed.

    ``support`` holds the roots, ``square`` is the law of T.
    """

    square: ExactNull | None = field(default=None, repr=False)

    @classmethod
    def of(cls, square: ExactNull) -> RootNull:
        """Return the law of √T from ``square``, the law of T ≥ 0; O(m) for m values."""
        support = np.sqrt(np.maximum(square.support, 0.0))
        mass = square.tail - np.append(square.tail[1:], 0.0)
        mean = float(mass @ support)
        deviation = float(np.sqrt(mass @ (support - mean) ** 2))
        return cls(support, square.tail, mean, deviation, error=square.error, square=square)

    def bracket(
        self, t: float, two_sided: bool = False, centre: float = 0.0
    ) -> tuple[float, float]:
        """Return (low, high), probabilities between which P(√T ≥ ``t``) = P(T ≥ t²) lies.

        ``two_sided`` and ``centre`` are not used: roots are compared one-sidedly.
        """
        assert self.square is not None
        return self.square.bracket(t * t) if t > 0.0 else (1.0, 1.0)


@dataclass(frozen=True, eq=False)
class AsymptoticNull(NullDistribution):
    """A null distribution in the limit of many observations.

    ``law`` is a frozen distribution of scipy.stats, such as ``scipy.stats.chi2(10)``.
    """

    law: Any

    def mean(self) -> float:
        return float(self.law.mean())

    def std(self) -> float:
        return float(self.law.std())

    def sf(self, t: float) -> float:
        with np.errstate(invalid="ignore", divide="ignore"):  # nan for a point mass
            return float(self.law.sf(t))

    def ppf(self, q: float) -> float:
        return float(self.law.ppf(q))

    def rvs(self, size: int, rng: RNG = None) -> FloatArray:
        return np.asarray(self.law.rvs(size=size, random_state=np.random.default_rng(rng)))


Extent = Literal["maximum", "range"]


#: Mean and variance of max|W| and of max W − min W for Brownian motion W on [0, 1] (Feller 1951);
#: 0.915… is Catalan's constant.
MOMENTS: dict[str, tuple[float, float]] = {
    "maximum": (np.sqrt(np.pi / 2.0), 2.0 * 0.915965594177219015 - np.pi / 2.0),
    "range": (np.sqrt(8.0 / np.pi), 4.0 * np.log(2.0) - 8.0 / np.pi),
}


#: Where the series for small values hands over to the one for large values: both need few terms.
HANDOVER = {"maximum": 1.0, "range": 2.0}


def normal(mean: float, deviation: float, labels: IntArray) -> AsymptoticNull:
    """Return the normal law with this ``mean`` and standard ``deviation`` as a null distribution.

    ``labels`` are not used; a limit law is a function of them by protocol.
    """
    from scipy.stats import norm

    return AsymptoticNull(norm(mean, deviation))


def chi_squared(df: int, labels: IntArray) -> AsymptoticNull:
    """Return the χ² law with ``df`` degrees of freedom as a null distribution.

    ``labels`` are not used; a limit law is a function of them by protocol.
    """
    from scipy.stats import chi2

    return AsymptoticNull(chi2(df))


@dataclass(frozen=True)
class BrownianNull(NullDistribution):
    """The law of ``scale`` · max|W| or ``scale`` · (max W − min W), W Brownian motion on [0, 1].

    ``extent`` is "maximum" or "range". With φ_k = (k + ½)π, for small x
    P(max|W| < x) = 2 Σ_{k≥0} (−1)^k exp(−φ_k² / 2x²) / φ_k and
    P(max W − min W < x) = Σ_{k≥0} (8 / x² + 2 / φ_k²) exp(−2 φ_k² / x²); for large x, with Q the
    normal tail, P(max|W| ≥ x) = 4 Σ_{k≥0} (−1)^k Q((2k + 1) x) and
    P(max W − min W ≥ x) = 8 Σ_{k≥1} (−1)^{k−1} k Q(kx) (Feller, Annals of Mathematical Statistics
    22, 1951). Tails keep their digits down to 1e-300.

    Examples
    --------
    >>> round(BrownianNull("maximum").ppf(0.95), 6), round(BrownianNull("range").ppf(0.95), 6)
    (2.241403, 2.497672)
    """

    extent: Extent
    scale: float = 1.0

    def mean(self) -> float:
        return float(self.scale * MOMENTS[self.extent][0])

    def std(self) -> float:
        return float(self.scale * np.sqrt(MOMENTS[self.extent][1]))

    def sf(self, t: float) -> float:
        if t <= 0.0 or self.scale == 0.0:
            return float(t <= 0.0)
        return float(_tail(self.extent, np.array([t / self.scale]))[0])

    def ppf(self, q: float) -> float:
        return float(self.scale * _points_of_tails(self.extent, np.array([1.0 - q]))[0])

    def rvs(self, size: int, rng: RNG = None) -> FloatArray:
        return self.scale * _points_of_tails(self.extent, np.random.default_rng(rng).random(size))


def _tail(extent: Extent, x: FloatArray) -> FloatArray:
    """Return P(max|W| ≥ x), or P(max W − min W ≥ x), for m points ``x``, (m,).

    W is Brownian motion on [0, 1]; ``extent`` is "maximum" or "range". The series are in
    :class:`BrownianNull`.
    """
    from scipy.special import erfc

    small = x < HANDOVER[extent]
    near = np.where(small, np.maximum(x, 1e-3), 1.0)[:, None]  # nothing lies below 0.001
    far = np.where(small, 10.0, x)[:, None]
    k, angle = np.arange(8), (np.arange(8) + 0.5) * np.pi
    sign = (-1.0) ** k
    if extent == "maximum":
        lower = 2.0 * (sign / angle * np.exp(-0.5 * (angle / near) ** 2)).sum(axis=1)
        upper = 2.0 * (sign * erfc((2 * k + 1) * far / np.sqrt(2.0))).sum(axis=1)
    else:
        width = 8.0 / near**2 + 2.0 / angle**2
        lower = (width * np.exp(-2.0 * (angle / near) ** 2)).sum(axis=1)
        upper = 4.0 * (sign * (k + 1) * erfc((k + 1) * far / np.sqrt(2.0))).sum(axis=1)
    return np.where(small, 1.0 - lower, upper)


def _points_of_tails(extent: Extent, tails: FloatArray) -> FloatArray:
    """Return the points at which given tail probabilities are reached, (m,), by bisection.

    ``tails`` (m,) are the probabilities of max|W| or of max W − min W, W Brownian motion on [0, 1];
    ``extent`` is "maximum" or "range".
    """
    low, high = np.zeros(tails.size), np.full(tails.size, 64.0)
    for _ in range(64):
        middle = 0.5 * (low + high)
        above = _tail(extent, middle) > tails
        low, high = np.where(above, middle, low), np.where(above, high, middle)
    return high


class MarkovNull(AsymptoticNull):
    """The heaviest tail that an e-value E can have under calibration: P(E ≥ t) = 1/t for t ≥ 1."""

    def mean(self) -> float:
        return 1.0  # at most

    def std(self) -> float:
        return float("nan")  # not known


def markov(labels: IntArray) -> MarkovNull:
    """Return the law of Markov's bound for e-values, P(E ≥ t) = 1/t, as a null distribution.

    ``labels`` are not used; a limit law is a function of them by protocol.
    """
    from scipy.stats import pareto

    return MarkovNull(pareto(1.0))


# ------------------------------------------------------------------------------
# Laws of counts: Poisson-binomial probabilities, and the interval of one probability.


#: Probability that may be left outside a window, per cell.
NEGLIGIBLE = 1e-17


#: Rounding allowed for in the law of a cell: a constant, and a factor of the root of its size
#: (measured: at most 1.1e-14 up to 10^4 rows and 1.6e-14 up to 10^6).
LAW_ROUNDING = (2e-14, 5e-17)


#: Rows multiplied out directly, in a group and in all; Chebyshev interpolation takes over above.
DIRECT, DIRECT_IN_ALL = 256, 1024


#: Trials whose law is multiplied out before it is transformed.
BLOCK = 8


#: Bounds of the groups: rounding grows with the width of a group times its size.
WIDTH_GROUPS = (1 / 64, 1 / 4, 3 / 4, 63 / 64)


#: Chebyshev nodes for a group of rows with similar predictions.
NODES = 32


#: Factors of lengths that transform fast.
ODD = tuple(3**i * 5**j for i in range(20) for j in range(14))


def poisson_binomial(p: FloatArray) -> tuple[int, FloatArray, float]:
    """Return (first, probabilities, error), the law of the number of successes in n trials.

    ``p`` (n,) are the probabilities of success in independent trials. ``first`` is an integer, the
    smallest number of successes that is not negligible, the array (W,) has the probabilities of it
    and the next ones, and ``error`` is a bound on the error of every tail probability: mass outside
    the window, wrapped mass, and rounding. Up to 64 trials by recursion, beyond through the
    characteristic function on the window of counts that Bernstein's inequality leaves: up to 1024
    trials are multiplied out in blocks, and of more, groups of over 256 trials with similar p enter
    through Chebyshev interpolation of log(1 − p + p e^{−iω}) in p. O(n + W log W), W the width of
    the window, about 18 standard deviations.
    """
    certain = int((p >= 1.0).sum())
    p = p[(p > 0.0) & (p < 1.0)]
    if p.size <= 64:
        return certain, _recursion(p), 0.0
    mean, variance = float(p.sum()), float((p * (1.0 - p)).sum())
    exponent = np.log(2.0 / NEGLIGIBLE)
    half = exponent / 3.0 + np.sqrt(exponent**2 / 9.0 + 2.0 * exponent * variance)
    low, high = max(0, int(mean - half)), min(p.size, int(mean + half) + 1)
    width = fast_length(high - low + 1)
    spectrum, origin = _spectrum(p, width, variance)
    pmf = np.roll(irfft(spectrum, width), (origin - low) % width)[: high - low + 1].clip(0.0)
    likely = np.flatnonzero(pmf > NEGLIGIBLE)
    pmf = pmf[likely[0] : likely[-1] + 1]
    lost = 2.0 * NEGLIGIBLE + LAW_ROUNDING[0] + LAW_ROUNDING[1] * float(np.sqrt(p.size))
    return certain + low + int(likely[0]), pmf, lost


@cache
def fast_length(size: int) -> int:
    """Return the smallest FFT length ≥ ``size`` whose prime factors are 2, 3 and 5."""
    odd = (factor for factor in ODD if factor < 2 * size)
    return min(factor << (-(-size // factor) - 1).bit_length() for factor in odd)


def _recursion(p: FloatArray) -> FloatArray:
    """Return the probabilities of 0, …, k successes in k independent trials, (k + 1,).

    ``p`` (k,) are the probabilities of success. O(k²).
    """
    pmf, grown = np.zeros(p.size + 1), np.empty(p.size + 1)
    pmf[0] = 1.0
    for success, failure in zip(p.tolist(), (1.0 - p).tolist(), strict=True):
        np.multiply(pmf, success, out=grown)
        pmf *= failure
        pmf[1:] += grown[:-1]
    return pmf


def _spectrum(p: FloatArray, width: int, variance: float) -> tuple[ComplexArray, int]:
    """Return (spectrum, origin): Σ_k P(k + origin) e^{−iωk} at the frequencies of a real FFT.

    P is the distribution of the number of successes in trials with probabilities ``p`` (n,), of
    this ``variance``; the FFT has length ``width``, and the complex spectrum shape (width // 2 +
    1,). The origin is the number of successes that entry 0 of its inverse stands for.
    """
    omega = 2.0 * np.pi * np.arange(width // 2 + 1) / width
    spectrum = np.zeros(omega.size, dtype=np.complex128)
    # Its modulus is at most exp(−V (1 − cos ω)): beyond that nothing is left to compute.
    alive = int((variance * (1.0 - np.cos(omega)) < 45.0).sum())
    spectrum[:alive] = 1.0
    # Angles are whole multiples, as those of high powers would lose digits.
    roots = np.exp(-2j * np.pi * np.arange(width) / width)
    turns = roots[np.arange(BLOCK + 1)[:, None] * np.arange(alive) % width]

    if p.size <= DIRECT_IN_ALL:
        spectrum[:alive] = _multiplied(p, turns)
        return spectrum, 0
    origin = 0
    similar = np.searchsorted(WIDTH_GROUPS, p)
    for g in np.unique(similar):
        group = p[similar == g]
        if group.size > DIRECT:
            failures = group[0] > 0.75  # count these: their chance is exact
            factor, shift = _interpolated(1.0 - group if failures else group, omega[:alive])
            spectrum[:alive] *= np.conj(factor) if failures else factor
            origin += group.size - shift if failures else shift
        else:
            spectrum[:alive] *= _multiplied(group, turns)
    return spectrum, origin


def _multiplied(p: FloatArray, turns: ComplexArray) -> ComplexArray:
    """Return the product over trials of 1 − p + p e^{−iω} at m frequencies ω, complex (m,).

    ``p`` (n,) are the probabilities of success; ``turns`` (b + 1, m) are the powers 0 to b of
    e^{−iω}. The law of every b trials is transformed as a whole: rounding grows with the number of
    factors.
    """
    laws = np.zeros((-(-p.size // BLOCK), BLOCK + 1))
    laws[:, 0] = 1.0
    padded = np.zeros(len(laws) * BLOCK)
    padded[: p.size] = p
    for success in padded.reshape(BLOCK, -1, 1):
        grown = laws[:, :-1] * success
        laws *= 1.0 - success
        laws[:, 1:] += grown
    product: ComplexArray = np.multiply.reduce(laws @ turns, axis=0)
    return product


def _interpolated(p: FloatArray, omega: FloatArray) -> tuple[ComplexArray, int]:
    """Return (product, shift) for the generating function Π_i (1 − p_i + p_i e^{−iω}).

    ``p`` (n,) are probabilities of success, ``omega`` (m,) frequencies ω, and the product is
    complex, (m,). It is computed as Π_c (1 − x_c + x_c e^{−iω})^{w_c} with nodes x_c. The weights
    w_c of this interpolation of the logarithm follow from the Chebyshev moments of ``p``. The
    factor e^{−iω·shift}, which would cost digits, is left out and the shift, an integer, returned.
    """
    low, high = float(p.min()), float(p.max())
    if high == low:
        nodes, weights = np.array([low]), np.array([float(p.size)])
    else:
        angles = np.pi * (np.arange(NODES) + 0.5) / NODES
        nodes = low + 0.5 * (high - low) * (1.0 + np.cos(angles))
        t = np.clip((2.0 * p - (low + high)) / (high - low), -1.0, 1.0)
        moments = np.empty(NODES)
        before, current = np.ones_like(t), t
        moments[0], moments[1] = 0.5 * p.size, t.sum()
        for k in range(2, NODES):
            before, current = current, 2.0 * t * current - before
            moments[k] = current.sum()
        weights = 2.0 / NODES * np.cos(np.outer(angles, np.arange(NODES))) @ moments
    # The logarithm of e^{ixω}(1 − x + x e^{−iω}), both parts written without cancellation.
    x = nodes[:, None]
    modulus = 0.5 * np.log1p(-4.0 * x * (1.0 - x) * np.sin(0.5 * omega) ** 2)
    real = (1.0 - x) * np.cos(x * omega) + x * np.cos((1.0 - x) * omega)
    imaginary = (1.0 - x) * np.sin(x * omega) - x * np.sin((1.0 - x) * omega)
    centred = weights @ (modulus + 1j * np.arctan2(imaginary, real))
    mean = float(p.sum())
    shift = round(mean)
    return np.exp(centred - 1j * (mean - shift) * omega), shift


def clopper_pearson(
    successes: ArrayLike, trials: ArrayLike, level: float = 0.99
) -> tuple[Any, Any]:
    """Return the Clopper–Pearson interval (low, high) of a probability, floats or arrays.

    ``successes`` and ``trials`` may be fractional (effective numbers); ``level`` is the confidence
    level. Arrays have the shape of ``successes`` and ``trials`` broadcast together.
    """
    from scipy.special import betaincinv

    s, n = np.asarray(successes, dtype=np.float64), np.asarray(trials, dtype=np.float64)
    tail = (1.0 - level) / 2.0
    low = np.where(s > 0, betaincinv(np.where(s > 0, s, 1.0), n - s + 1.0, tail), 0.0)
    high = np.where(s < n, betaincinv(s + 1.0, np.where(s < n, n - s, 1.0), 1.0 - tail), 1.0)
    return (float(low), float(high)) if low.ndim == 0 else (low, high)
