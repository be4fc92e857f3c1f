"""Which expert has earned most: what it says, in words and as a curve."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import itemgetter

import numpy as np

from caltest._base.arrays import FloatArray
from caltest.bets import kernels
from caltest.bets.kernels import LATE_SCALE, LEAVES, LINES, N_FLAT, N_LINES, NOISE, TREE
from caltest.results.numbers import in_percent

#: The log of what an expert has, its words, and its curve: a function of predictions in (0, 1).
Leader = tuple[float, str, Callable[[FloatArray], FloatArray]]


def leader(state: FloatArray, n_classes: int, mode: int) -> Leader:
    """Return the leader of a state; O(K)."""
    with np.errstate(divide="ignore"):  # some wealth is lost for good
        earned, words, curve = _of_two(state[: kernels.TWO_CLASSES], mode)
        if n_classes == 2:
            return earned, words, curve
        top = earned + float(np.log(kernels.TOP_SHARE)), f"top class: {words}", curve
        many = _of_many(state[kernels.TWO_CLASSES :], n_classes, mode)
    return max(top, many, key=itemgetter(0))


def _pools(state: FloatArray, n_flat: int, mode: int) -> FloatArray:
    """Return the log of what the flat experts have, static and late."""
    flat, late = state[kernels.SCALARS :][:n_flat], state[kernels.SCALARS + n_flat :][:n_flat]
    moved = np.log(late) + state[LATE_SCALE]
    if mode == kernels.CHANGE:
        return moved
    return np.logaddexp(np.log(flat) + state[kernels.FLAT_SCALE], moved)


def _of_two(state: FloatArray, mode: int) -> Leader:
    flat = _pools(state, N_FLAT, mode)
    late = state[kernels.LATE_AT + N_FLAT : kernels.TREE_AT].reshape(kernels.N_CELLS, 10)
    cells = np.full((2 * LEAVES, 10), -np.inf)
    cells[2:LEAVES] = np.log(late) + state[LATE_SCALE]
    if mode != kernels.CHANGE:
        reach, stop = np.ones(2 * LEAVES), state[kernels.STOP_AT :]
        for i in range(2, 2 * LEAVES):
            reach[i] = reach[i >> 1] / (1.0 + stop[i >> 1])
        reach[:LEAVES] *= stop[:LEAVES] / (1.0 + stop[:LEAVES])
        shares = state[kernels.TREE_AT : kernels.STOP_AT].reshape(2 * LEAVES, 11)[:, 1:]
        static = np.log(kernels.TREE_SHARE * reach[:, None] * shares) + state[TREE]
        cells = np.logaddexp(cells, static)
    j, (i, k) = int(flat.argmax()), divmod(int(cells.argmax()), 10)
    if cells[i, k] > flat[j]:
        u = np.array([i, i + 1]) / 2.0 ** (i.bit_length() - 1) - 1.0
        low, high = map(float, u**2 / (u**2 + (1.0 - u) ** 2))
        a = float(kernels.SHIFTS[k + 1])
        words = f"predictions from {in_percent(low)} to {in_percent(high)} {_shifted(a)}"
        return float(cells[i, k]), words, partial(_line, b=1.0, a=a, low=low, high=high)
    if j >= N_LINES:
        return float(flat[j]), *_random(NOISE[j - N_LINES], "are random", 0.5)
    b, a = map(float, LINES[j])
    words = _shifted(a)
    if b != 1.0:
        centre = float(1.0 / (1.0 + np.exp(a / (b - 1.0))))
        words = f"{_confidence(b)}, slope {b:.2f} about {in_percent(centre)}"
    return float(flat[j]), words, partial(_line, b=b, a=a)


def _of_many(state: FloatArray, K: int, mode: int) -> Leader:
    flat = _pools(state, 22 + 22 * K, mode)
    j = int(flat.argmax())
    (c, r), earned = divmod(j - 22, 22), float(flat[j])
    groups = state[kernels.SCALARS + 2 * flat.size :].reshape(K, 17)[1:, 1:]
    nested = float(np.log(kernels.NESTED_SHARE * groups.max())) + float(state[TREE])
    if nested > earned and mode != kernels.CHANGE:
        return nested, "some classes too high against others", partial(_line, b=1.0, a=0.0)
    if j < 16:
        b = float(kernels.POWERS[j])
        words = f"{_confidence(b)}, probabilities to the power {b:.2f}"
        return earned, words, partial(_line, b=b, a=0.0)
    if j < 22:
        return earned, *_random(NOISE[j - 16], "are random", 1.0 / K)
    if r < 16:
        a = float(np.log(kernels.CLASS_FACTORS[r]))
        return earned, f"class {c} {_shifted(a)}", partial(_line, b=1.0, a=a)
    return earned, *_random(NOISE[r - 16], f"are class {c} whatever was said", 1.0)


def _line(p: FloatArray, b: float, a: float, low: float = 0.0, high: float = 1.0) -> FloatArray:
    q = 1.0 / (1.0 + np.exp(-b * np.log(p / (1.0 - p)) - a))
    return np.where((p >= low) & (p <= high), q, p)


def _random(noise: float, words: str, target: float) -> tuple[str, Callable[..., FloatArray]]:
    return f"{100 * noise:g} % of outcomes {words}", lambda p: (1.0 - noise) * p + noise * target


def _confidence(slope: float) -> str:
    return "overconfident" if slope < 1.0 else "underconfident"


def _shifted(shift: float) -> str:
    return f"too {'low' if shift > 0.0 else 'high'} by {abs(shift):.2g} in log-odds"
