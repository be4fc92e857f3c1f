"""The mixture of bets: how rows move its state, and what the best of them says."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import itemgetter

import numpy as np

from caltest._base.arrays import FloatArray, IntArray
from caltest._base.progress import progress
from caltest.bets import kernels
from caltest.results.numbers import in_percent

#: Rows between two looks at the clock and at Ctrl-C.
AT_ONCE = 2**18
#: Within that of 0 and 1, most predictions are on one side of the centre of a slope.
FAR = 0.1


def start(n_classes: int) -> FloatArray:
    """Return the state before the first row: 1482 numbers, and 61 K + 55 more for K > 2 classes."""
    two = np.zeros(kernels.TWO_CLASSES)
    two[kernels.KEPT] = 1.0
    two[kernels.FLAT] = kernels.PRIOR.sum()
    two[kernels.SCALARS : kernels.LATE_AT] = kernels.PRIOR
    two[kernels.TREE_AT : kernels.STOP_AT] = np.tile(kernels.SHIFT_PRIOR, 2 * kernels.LEAVES)
    two[kernels.STOP_AT :] = 1.0
    if n_classes == 2:
        return two
    prior = class_prior(n_classes)
    nested = np.tile(kernels.NESTED_PRIOR, n_classes)
    many = np.concatenate([np.zeros(kernels.SCALARS), prior, np.zeros(prior.size), nested])
    many[kernels.KEPT] = 1.0
    many[kernels.FLAT] = prior.sum()
    return np.append(two, many)


def class_prior(n_classes: int) -> FloatArray:
    """Return the shares of the flat experts of K > 2 classes: powers, noise, each class's own."""
    each = np.append(np.full(16, 0.15 / 16), np.full(6, 0.1 / 6)) / n_classes
    return np.concatenate([np.full(16, 0.25 / 16), np.full(6, 0.15 / 6), np.tile(each, n_classes)])


def bet(
    probs: FloatArray, labels: IntArray, weights: FloatArray, mode: int, state: FloatArray
) -> FloatArray:
    """Bet on every row, one after the other; return the log of the wealth after each, shape (n,).

    The state is moved on in place. A bet of weight w ≤ 1 stakes that share of the wealth. The event
    of two classes is class 0. O(n (220 + 60 K)) after the first use, which compiles.
    """
    n, n_classes = probs.shape
    if n > AT_ONCE:
        parts = []
        with progress(n, "rows") as done:
            for a in range(0, n, AT_ONCE):
                some = slice(a, a + AT_ONCE)
                parts.append(bet(probs[some], labels[some], weights[some], mode, state))
                done(len(parts[-1]))
        return np.concatenate(parts)
    rows, path = np.empty((n, 4)), np.empty(n)
    if n_classes == 2:
        rows[:, :2], rows[:, 2], rows[:, 3] = probs, labels == 0, weights
        kernels.bet_two(rows, mode, state, path)
        return path
    every, top = np.arange(n), probs.argmax(axis=1)
    rows[:, 0] = probs[every, top]
    rows[:, 1] = probs.sum(axis=1) - rows[:, 0]
    sure = np.flatnonzero(rows[:, 1] < 1e-6)  # where the difference loses digits
    others = probs[sure]
    others[np.arange(sure.size), top[sure]] = 0.0
    rows[sure, 1] = others.sum(axis=1)
    rows[:, 2], rows[:, 3] = labels == top, weights
    kernels.bet_two(rows, mode, state[: kernels.TWO_CLASSES], path)
    probs = np.ascontiguousarray(probs)
    prior = class_prior(n_classes)
    kernels.bet_many(probs, labels, weights, mode, state[kernels.TWO_CLASSES :], prior, path)
    return path


def bet_at_times(
    probs: FloatArray,
    labels: IntArray,
    weights: FloatArray,
    sizes: IntArray,
    mode: int,
    state: FloatArray,
) -> FloatArray:
    """Bet once on all rows of a time, which may depend on each other; as :func:`bet`.

    ``sizes`` are the numbers of rows of the times; the log of the wealth has the shape of these.
    Of two classes only.
    """
    rows, path = np.column_stack([probs, labels == 0, weights]), np.empty(sizes.size)
    first = np.append(0, sizes.cumsum())
    with progress(sizes.size, "times") as done:
        for a in range(0, sizes.size, AT_ONCE // 32):
            now = slice(a, a + AT_ONCE // 32)
            kernels.bet_times(rows[first[a] :], sizes[now], mode, state, path[now])
            done(len(path[now]))
    return path


def scalar(states: FloatArray, which: int) -> FloatArray:
    """Return a scalar of states of shape (h, size): of all classes, not of the top class."""
    first = 0 if states.shape[1] == kernels.TWO_CLASSES else kernels.TWO_CLASSES
    return states[:, first + which]


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
    moved = np.log(late) + state[kernels.LATE_SCALE]
    if mode == kernels.CHANGE:
        return moved
    return np.logaddexp(np.log(flat) + state[kernels.FLAT_SCALE], moved)


def _of_two(state: FloatArray, mode: int) -> Leader:
    flat = _pools(state, kernels.N_FLAT, mode)
    late = state[kernels.LATE_AT + kernels.N_FLAT : kernels.TREE_AT].reshape(kernels.N_CELLS, 10)
    cells = np.full((2 * kernels.LEAVES, 10), -np.inf)
    cells[2 : kernels.LEAVES] = np.log(late) + state[kernels.LATE_SCALE]
    if mode != kernels.CHANGE:
        reach, stop = np.ones(2 * kernels.LEAVES), state[kernels.STOP_AT :]
        for i in range(2, 2 * kernels.LEAVES):
            reach[i] = reach[i >> 1] / (1.0 + stop[i >> 1])
        reach[: kernels.LEAVES] *= stop[: kernels.LEAVES] / (1.0 + stop[: kernels.LEAVES])
        shares = state[kernels.TREE_AT : kernels.STOP_AT].reshape(2 * kernels.LEAVES, 11)[:, 1:]
        static = np.log(kernels.TREE_SHARE * reach[:, None] * shares) + state[kernels.TREE]
        cells = np.logaddexp(cells, static)
    j, (i, k) = int(flat.argmax()), divmod(int(cells.argmax()), 10)
    if cells[i, k] > flat[j]:
        u = np.array([i, i + 1]) / 2.0 ** (i.bit_length() - 1) - 1.0
        low, high = map(float, u**2 / (u**2 + (1.0 - u) ** 2))
        a = float(kernels.SHIFTS[k + 1])
        words = f"predictions from {in_percent(low)} to {in_percent(high)} {_shifted(a)}"
        return float(cells[i, k]), words, partial(_line, b=1.0, a=a, low=low, high=high)
    if j >= kernels.N_LINES:
        return float(flat[j]), *_random(kernels.NOISE[j - kernels.N_LINES], "are random", 0.5)
    b, a = map(float, kernels.LINES[j])
    words = _shifted(a)
    if b != 1.0:
        centre = float(1.0 / (1.0 + np.exp(a / (b - 1.0))))
        words = f"{_confidence(b)}, slope {b:.2f} about {in_percent(centre)}"
        if not FAR <= centre <= 1.0 - FAR:
            side = "high" if (b > 1.0) == (centre > 0.5) else "low"
            where = "below" if centre > 0.5 else "above"
            words = f"too {side} {where} {in_percent(centre)}, slope {b:.2f}"
    return float(flat[j]), words, partial(_line, b=b, a=a)


def _of_many(state: FloatArray, K: int, mode: int) -> Leader:
    flat = _pools(state, 22 + 22 * K, mode)
    j = int(flat.argmax())
    (c, r), earned = divmod(j - 22, 22), float(flat[j])
    groups = state[kernels.SCALARS + 2 * flat.size :].reshape(K, 17)[1:, 1:]
    nested = float(np.log(kernels.NESTED_SHARE * groups.max())) + float(state[kernels.TREE])
    if nested > earned and mode != kernels.CHANGE:
        return nested, "some classes too high against others", partial(_line, b=1.0, a=0.0)
    if j < 16:
        b = float(kernels.POWERS[j])
        words = f"{_confidence(b)}, probabilities to the power {b:.2f}"
        return earned, words, partial(_line, b=b, a=0.0)
    if j < 22:
        return earned, *_random(kernels.NOISE[j - 16], "are random", 1.0 / K)
    if r < 16:
        a = float(np.log(kernels.CLASS_FACTORS[r]))
        return earned, f"class {c} {_shifted(a)}", partial(_line, b=1.0, a=a)
    return earned, *_random(kernels.NOISE[r - 16], f"are class {c} whatever was said", 1.0)


def _line(p: FloatArray, b: float, a: float, low: float = 0.0, high: float = 1.0) -> FloatArray:
    q = 1.0 / (1.0 + np.exp(-b * np.log(p / (1.0 - p)) - a))
    return np.where((p >= low) & (p <= high), q, p)


def _random(noise: float, words: str, target: float) -> tuple[str, Callable[..., FloatArray]]:
    return f"{100 * noise:g} % of outcomes {words}", lambda p: (1.0 - noise) * p + noise * target


def _confidence(slope: float) -> str:
    return "overconfident" if slope < 1.0 else "underconfident"


def _shifted(shift: float) -> str:
    return f"too {'low' if shift > 0.0 else 'high'} by {abs(shift):.2g} in log-odds"
