"""Betting kernels: a mixture of experts bets against calibration, and keeps its wealth.

A state is one vector (:func:`start`); :func:`bet` and :func:`bet_at_times` move it by rows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from operator import itemgetter

import numpy as np

from caltest._base.arrays import FloatArray, IntArray, progress
from caltest.nulls.lanes import dense_kernel, inlined
from caltest.results.rendering import in_percent

#: Rows between two looks at the clock and at Ctrl-C.
ROWS_BETWEEN_CHECKS = 2**18


#: Within that of 0 and 1, most predictions are on one side of the centre of a slope.
FAR = 0.1


def start(n_classes: int) -> FloatArray:
    """Return the state of the bets on ``n_classes`` classes before the first row.

    The wealth of each expert is its prior share. The state is a vector of shape (1482,), or (1536 +
    61 K,) for K > 2 classes. It begins with ten scalars, whose indices are ``ROWS`` … ``NOW``; then
    come the wealth of the experts that bet from the first row on, of late experts, and the tree of
    shifts. For K > 2 the bets on the top class are followed by bets on all classes.
    """
    two = np.zeros(TWO_CLASSES)
    two[KEPT] = 1.0
    two[FLAT] = EXPERT_PRIOR.sum()
    two[SCALARS:LATE_AT] = EXPERT_PRIOR
    two[TREE_AT:STOP_AT] = np.tile(SHIFT_PRIOR, 2 * LEAVES)
    two[STOP_AT:] = 1.0
    if n_classes == 2:
        return two
    prior = class_prior(n_classes)
    nested = np.tile(NESTED_PRIOR, n_classes)
    many = np.concatenate([np.zeros(SCALARS), prior, np.zeros(prior.size), nested])
    many[KEPT] = 1.0
    many[FLAT] = prior.sum()
    return np.append(two, many)


def class_prior(n_classes: int) -> FloatArray:
    """Return the prior shares of the experts that bet on all of K > 2 classes, shape (22 + 22 K,).

    There are 22 experts for all classes (16 powers of the predictions and 6 degrees of label
    noise), and 22 for each single class.
    """
    each = np.append(np.full(16, 0.15 / 16), np.full(6, 0.1 / 6)) / n_classes
    return np.concatenate([np.full(16, 0.25 / 16), np.full(6, 0.15 / 6), np.tile(each, n_classes)])


def bet(
    probs: FloatArray, labels: IntArray, weights: FloatArray, mode: int, state: FloatArray
) -> FloatArray:
    """Bet on n rows, one after the other; return the log wealth after each, (n,).

    ``probs`` (n, K), ``labels`` (n,) and ``weights`` (n,) are the rows; a bet of weight w ≤ 1
    stakes that share of the wealth. ``mode`` is STATIC (all experts bet from the first row on),
    CHANGE (only experts that start late) or MONITOR (both). The ``state`` of all experts, see
    :func:`start`, is updated in place. For two classes the event is class 0. O(n (220 + 60 K))
    after the first use, which compiles.
    """
    n, n_classes = probs.shape
    if n > ROWS_BETWEEN_CHECKS:
        parts = []
        with progress(n, "rows") as done:
            for a in range(0, n, ROWS_BETWEEN_CHECKS):
                some = slice(a, a + ROWS_BETWEEN_CHECKS)
                parts.append(bet(probs[some], labels[some], weights[some], mode, state))
                done(len(parts[-1]))
        return np.concatenate(parts)
    rows, path = np.empty((n, 4)), np.empty(n)
    if n_classes == 2:
        rows[:, :2], rows[:, 2], rows[:, 3] = probs, labels == 0, weights
        bet_two(rows, mode, state, path)
        return path
    every, top = np.arange(n), probs.argmax(axis=1)
    rows[:, 0] = probs[every, top]
    rows[:, 1] = probs.sum(axis=1) - rows[:, 0]
    sure = np.flatnonzero(rows[:, 1] < 1e-6)  # where the difference loses digits
    others = probs[sure]
    others[np.arange(sure.size), top[sure]] = 0.0
    rows[sure, 1] = others.sum(axis=1)
    rows[:, 2], rows[:, 3] = labels == top, weights
    bet_two(rows, mode, state[:TWO_CLASSES], path)
    probs = np.ascontiguousarray(probs)
    prior = class_prior(n_classes)
    bet_many(probs, labels, weights, mode, state[TWO_CLASSES:], prior, path)
    return path


def bet_at_times(
    probs: FloatArray,
    labels: IntArray,
    weights: FloatArray,
    sizes: IntArray,
    mode: int,
    state: FloatArray,
) -> FloatArray:
    """Bet once on all rows of each time, which may depend on each other.

    Return the log wealth after each of T times, shape (T,). ``probs`` (n, 2), ``labels`` (n,) and
    ``weights`` (n,) are the rows of two classes in order of time; a bet of weight w ≤ 1 stakes that
    share of the wealth. ``sizes`` (T,) are the numbers of rows of the times. ``mode`` is STATIC
    (all experts bet from the first row on), CHANGE (only experts that start late) or MONITOR
    (both). The ``state`` of all experts, see :func:`start`, is updated in place.
    """
    rows, path = np.column_stack([probs, labels == 0, weights]), np.empty(sizes.size)
    first = np.append(0, sizes.cumsum())
    with progress(sizes.size, "times") as done:
        for a in range(0, sizes.size, ROWS_BETWEEN_CHECKS // 32):
            now = slice(a, a + ROWS_BETWEEN_CHECKS // 32)
            bet_times(rows[first[a] :], sizes[now], mode, state, path[now])
            done(len(path[now]))
    return path


def scalar(states: FloatArray, which: int) -> FloatArray:
    """Return one scalar of the betting state of h processes, (h,), from ``states`` (h, size).

    ``which`` is its index, for example ``NOW``, the log wealth. For more than two classes the
    scalars of the bets on all classes are taken, which are stored after the bets on the top class.
    """
    first = 0 if states.shape[1] == TWO_CLASSES else TWO_CLASSES
    return states[:, first + which]


#: The log of what an expert has, its words, and its curve: a function of predictions in (0, 1).
Leader = tuple[float, str, Callable[[FloatArray], FloatArray]]


def leader(state: FloatArray, n_classes: int, mode: int) -> Leader:
    """Return (log wealth, description, curve) of the betting expert with the largest wealth; O(K).

    The description is for messages, such as "too high by 0.5 in log-odds"; the curve is a function
    that recalibrates p in (0, 1), same shape. ``state`` is the state of the bets on ``n_classes``
    classes, see :func:`start`, and ``mode`` says which experts bet: STATIC, CHANGE or MONITOR, as
    in :func:`bet`.
    """
    with np.errstate(divide="ignore"):  # some wealth is lost for good
        earned, words, curve = _of_two(state[:TWO_CLASSES], mode)
        if n_classes == 2:
            return earned, words, curve
        top = earned + float(np.log(TOP_SHARE)), f"top class: {words}", curve
        many = _of_many(state[TWO_CLASSES:], n_classes, mode)
    return max(top, many, key=itemgetter(0))


def _pools(state: FloatArray, n_flat: int, mode: int) -> FloatArray:
    """Return the log wealth of each of the ``n_flat`` experts outside the tree, (n_flat,).

    It is the sum of the pool that bets from the first row on and the pool of late starts, or the
    latter alone if ``mode`` is CHANGE (late experts only). ``state`` is the state of the bets, see
    :func:`start`.
    """
    flat, late = state[SCALARS:][:n_flat], state[SCALARS + n_flat :][:n_flat]
    moved = np.log(late) + state[LATE_SCALE]
    if mode == CHANGE:
        return moved
    return np.logaddexp(np.log(flat) + state[FLAT_SCALE], moved)


def _of_two(state: FloatArray, mode: int) -> Leader:
    """Return (log wealth, description, curve) of the leading expert for two classes.

    The curve is a function that recalibrates p in (0, 1). ``state`` is the state of the bets for
    two classes, see :func:`start`; ``mode`` says which experts bet: STATIC, CHANGE or MONITOR.
    """
    flat = _pools(state, N_FLAT, mode)
    late = state[LATE_AT + N_FLAT : TREE_AT].reshape(N_CELLS, 10)
    cells = np.full((2 * LEAVES, 10), -np.inf)
    cells[2:LEAVES] = np.log(late) + state[LATE_SCALE]
    if mode != CHANGE:
        reach, stop = np.ones(2 * LEAVES), state[STOP_AT:]
        for i in range(2, 2 * LEAVES):
            reach[i] = reach[i >> 1] / (1.0 + stop[i >> 1])
        reach[:LEAVES] *= stop[:LEAVES] / (1.0 + stop[:LEAVES])
        shares = state[TREE_AT:STOP_AT].reshape(2 * LEAVES, 11)[:, 1:]
        static = np.log(TREE_SHARE * reach[:, None] * shares) + state[TREE]
        cells = np.logaddexp(cells, static)
    j, (i, k) = int(flat.argmax()), divmod(int(cells.argmax()), 10)
    if cells[i, k] > flat[j]:
        u = np.array([i, i + 1]) / 2.0 ** (i.bit_length() - 1) - 1.0
        low, high = map(float, u**2 / (u**2 + (1.0 - u) ** 2))
        a = float(EXPERT_SHIFTS[k + 1])
        words = f"predictions from {in_percent(low)} to {in_percent(high)} {_shifted(a)}"
        return float(cells[i, k]), words, partial(_logistic, b=1.0, a=a, low=low, high=high)
    if j >= N_LINES:
        return float(flat[j]), *_random(NOISE[j - N_LINES], "are random", 0.5)
    b, a = map(float, LINES[j])
    words = _shifted(a)
    if b != 1.0:
        centre = float(1.0 / (1.0 + np.exp(a / (b - 1.0))))
        words = f"{_confidence(b)}, slope {b:.2f} about {in_percent(centre)}"
        if not FAR <= centre <= 1.0 - FAR:
            side = "high" if (b > 1.0) == (centre > 0.5) else "low"
            where = "below" if centre > 0.5 else "above"
            words = f"too {side} {where} {in_percent(centre)}, slope {b:.2f}"
    return float(flat[j]), words, partial(_logistic, b=b, a=a)


def _of_many(state: FloatArray, K: int, mode: int) -> Leader:
    """Return (log wealth, description, curve) of the leading expert on all of K classes.

    The curve is a function that recalibrates p in (0, 1). ``state`` is the part of the state after
    the bets on the top class, see :func:`start`; ``K`` is the number of classes, and ``mode`` says
    which experts bet: STATIC, CHANGE or MONITOR.
    """
    flat = _pools(state, 22 + 22 * K, mode)
    j = int(flat.argmax())
    (c, r), earned = divmod(j - 22, 22), float(flat[j])
    groups = state[SCALARS + 2 * flat.size :].reshape(K, 17)[1:, 1:]
    nested = float(np.log(NESTED_SHARE * groups.max())) + float(state[TREE])
    if nested > earned and mode != CHANGE:
        return nested, "some classes too high against others", partial(_logistic, b=1.0, a=0.0)
    if j < 16:
        b = float(POWERS[j])
        words = f"{_confidence(b)}, probabilities to the power {b:.2f}"
        return earned, words, partial(_logistic, b=b, a=0.0)
    if j < 22:
        return earned, *_random(NOISE[j - 16], "are random", 1.0 / K)
    if r < 16:
        a = float(np.log(CLASS_FACTORS[r]))
        return earned, f"class {c} {_shifted(a)}", partial(_logistic, b=1.0, a=a)
    return earned, *_random(NOISE[r - 16], f"are class {c} whatever was said", 1.0)


def _logistic(p: FloatArray, b: float, a: float, low: float = 0.0, high: float = 1.0) -> FloatArray:
    """Return σ(b logit p + a) where ``low`` ≤ p ≤ ``high``, and p elsewhere, same shape as ``p``.

    σ is the logistic function; ``b`` is a slope and ``a`` a shift of the log-odds.
    """
    q = 1.0 / (1.0 + np.exp(-b * np.log(p / (1.0 - p)) - a))
    return np.where((p >= low) & (p <= high), q, p)


def _random(noise: float, words: str, target: float) -> tuple[str, Callable[..., FloatArray]]:
    """Return (description, curve) of an expert for label noise, q = (1 − noise) p + noise · target.

    The curve is the function from predictions p to q, ``noise`` the share of random outcomes, and
    ``target`` their probability. ``words`` end the description: "2 % of outcomes are random".
    """
    return f"{100 * noise:g} % of outcomes {words}", lambda p: (1.0 - noise) * p + noise * target


def _confidence(slope: float) -> str:
    return "overconfident" if slope < 1.0 else "underconfident"


def _shifted(shift: float) -> str:
    """Return a phrase on a shift of the log-odds, such as "too low by 0.5 in log-odds" for 0.5."""
    return f"too {'low' if shift > 0.0 else 'high'} by {abs(shift):.2g} in log-odds"


# ------------------------------------------------------------------------------
# The compiled bets: what the outcome of a row does to the wealth of every expert.
#
# A state is one vector: scalars, the wealth of the flat experts, the wealth of the late pool, and
# for two classes the tree of local shifts, for more the shifts within groups of classes.


#: Scalars of a state: counts, logarithms of scales and of the tree, sums of the pools, the result.
ROWS, KEPT, IMPOSSIBLE, FLAT_SCALE, TREE, LATE_SCALE, FLAT, LATE, LOCAL, NOW, SCALARS = range(11)


#: The logarithm of the wealth once an outcome had probability 0.
REFUTED = 1e300


#: What the wealth is made of: static pools only, static and late, or late starts only.
STATIC, MONITOR, CHANGE = range(3)


#: Rows between late starts.
EVERY = 32


#: Log-odds of probabilities are those of at least this.
LOG_ODDS_CLIP = 1e-12


def _signed_powers(least: int, most: int) -> FloatArray:
    """Return ±2^j for j from ``least`` to ``most``, increasing, shape (2 (most − least + 1),)."""
    steps = 2.0 ** np.arange(least, most + 1)
    return np.append(-steps[::-1], steps)


def _lines() -> FloatArray:
    """Return the L experts σ(b z + a) as rows (slope b, shift a, prior share), (L, 3).

    z is the log-odds of the prediction and σ the logistic function; rows are sorted by slope.
    """
    # Shifts ± 2⁻⁸ … 2 and slopes exp(± 2⁻⁷ … 1): close together where errors are small.
    shifts, slopes = _signed_powers(-8, 1), np.exp(_signed_powers(-7, 0))
    rows = [(1.0, a, 0.2 / 20) for a in shifts]
    for centre, share in ((0.0, 0.5), (-4.0, 0.125), (-2.0, 0.125), (2.0, 0.125), (4.0, 0.125)):
        rows += [(b, (1.0 - b) * centre, 0.3 * share / 16) for b in slopes]
    far = [(b, a) for b in (*slopes[:4], *slopes[-4:]) for a in (*shifts[:6], *shifts[-6:])]
    return np.array(sorted(rows + [(b, a, 0.15 / 96) for b, a in far]))


LINES, NOISE = _lines(), np.array([0.01, 0.02, 0.05, 0.1, 0.2, 0.4])


EXPERT_SLOPES, FIRST_OF_SLOPE = np.unique(LINES[:, 0], return_index=True)


SLOPE_OF = np.searchsorted(EXPERT_SLOPES, LINES[:, 0])


FACTORS = np.exp(np.stack([LINES[:, 1], -LINES[:, 1]]))


EXPERT_PRIOR, LINES = np.append(LINES[:, 2], np.full(6, 0.1 / 6)), LINES[:, :2]


N_LINES, N_FLAT = len(LINES), len(EXPERT_PRIOR)


#: The tree: shifts of its nodes and their shares, depth, and the cells that start late.
LEAVES, TREE_SHARE = 32, 0.25


EXPERT_SHIFTS = np.append(0.0, _signed_powers(-3, 1))


SHIFT_FACTORS, SHIFT_PRIOR = (
    np.exp(np.stack([EXPERT_SHIFTS, -EXPERT_SHIFTS])),
    np.append(0.5, np.full(10, 0.05)),
)


N_CELLS = 30


LATE_PRIOR = np.concatenate(
    [EXPERT_PRIOR, *(np.full(10 * 2**level, 0.25 / 4 / 2**level / 10) for level in range(1, 5))]
)


LATE_AT = SCALARS + N_FLAT


TREE_AT = LATE_AT + N_FLAT + 10 * N_CELLS


STOP_AT = TREE_AT + 2 * LEAVES * 11


TWO_CLASSES = STOP_AT + 2 * LEAVES


#: More classes: exponents of all, shifts of one class, and the shares of the pools.
POWERS, CLASS_FACTORS = np.exp(_signed_powers(-7, 0)), np.exp(_signed_powers(-6, 1))


NESTED_SHARE, TOP_SHARE = 0.15, 0.2


NESTED_PRIOR = np.append(0.5, np.full(16, 0.5 / 16))


@inlined
def multiplied(pool: FloatArray, ratios: FloatArray) -> float:
    """Multiply the wealth of m experts, ``pool`` (m,), by ``ratios`` (m,) in place; return its sum.

    Subnormal numbers, which are slow, become 0.
    """
    total = 0.0
    for j in range(len(ratios)):
        x = pool[j] * ratios[j]
        x = x if x > 1e-280 else 0.0
        pool[j] = x
        total += x
    return total


@inlined
def settled(
    s: FloatArray, mode: int, flat: FloatArray, late: FloatArray, prior: FloatArray, rows: float
) -> None:
    """Finish the bets on a group of rows: start late experts every 32 rows, and rescale wealth.

    Rescaling prevents overflow. ``s`` are the ten scalars with which the state begins, see
    :func:`start`, ``flat`` and ``late`` the wealth of the experts that bet from the first row on
    and of late ones (all changed in place), ``prior`` the shares of new late experts, ``rows`` the
    number of rows of the group. ``mode`` is STATIC, CHANGE or MONITOR, as in :func:`bet`.
    """
    starts = (s[ROWS] + rows) // EVERY - s[ROWS] // EVERY
    s[ROWS] += rows
    if mode != STATIC and starts > 0.0:
        # The reserve falls slowly, so that a late change still meets a bet of some size.
        reserve = 1.0 / (1.0 + np.log1p(s[ROWS] / 100.0))
        moved = starts if mode == CHANGE else s[KEPT] - reserve
        s[KEPT] = reserve
        late += moved * np.exp(-s[LATE_SCALE]) * prior
        s[LATE] = late.sum()
        s[LOCAL] = late[N_FLAT : N_FLAT + 10 * N_CELLS].sum()
    # Scales are taken out before products leave the range of a double.
    if s[FLAT] > 1e100 or s[FLAT] < 1e-100:
        flat /= s[FLAT]
        s[FLAT_SCALE] += np.log(s[FLAT])
        s[FLAT] = 1.0
    if s[LATE] > 1e100 or 0.0 < s[LATE] < 1e-100:
        late /= s[LATE]
        s[LOCAL] /= s[LATE]
        s[LATE_SCALE] += np.log(s[LATE])
        s[LATE] = 1.0


@inlined
def wealth(s: FloatArray, mode: int, tree_share: float, late_share: float) -> float:
    """Return the natural logarithm of the wealth of all experts together.

    ``s`` are the ten scalars with which the state begins, see :func:`start`: for example
    ``s[FLAT_SCALE] + log s[FLAT]`` is the log wealth of early experts, and ``s[TREE]`` of the tree.
    ``tree_share`` and ``late_share`` are the prior shares of the tree and of late experts. ``mode``
    is STATIC, CHANGE or MONITOR, as in :func:`bet`: early experts, late ones, or both count. It is
    1e300 if an outcome had probability 0.
    """
    if s[IMPOSSIBLE] > 0.0:
        return REFUTED
    late = s[LATE_SCALE] + np.log(max(s[LATE], 1e-300))
    static = np.logaddexp(s[FLAT_SCALE] + np.log(s[FLAT]), s[TREE] + np.log(tree_share))
    if mode == STATIC:
        return static
    if mode == CHANGE:
        return np.log(late_share) + late
    pooled = np.log(late_share) + np.logaddexp(np.log(s[KEPT]), late)
    return np.log(0.5) + np.logaddexp(static, pooled)


@inlined
def factors(
    p: float, rest: float, happened: int, weight: float, powers: FloatArray, e: FloatArray,
    q: FloatArray, d: FloatArray,
) -> int:  # fmt: skip
    """Write the wealth factors that one row gives each expert; return its leaf of the tree.

    ``p`` and ``rest`` = 1 − p are the prediction, ``happened`` the outcome (0 or 1), ``weight`` the
    stake, a share of the wealth, and ``powers`` and ``e`` work space, one entry for each slope and
    each line of :func:`_lines`. ``q`` receives the factors of the experts outside the tree, ``d``
    (11,) the factors of the shifts. The leaf of the tree of shifts is the number (from 0) of the
    interval that p falls into.
    """
    right = p if happened else rest
    per = 1.0 / max(right, 1e-100)
    z = np.log(max(p, LOG_ODDS_CLIP)) - np.log(max(rest, LOG_ODDS_CLIP))
    leaf = min(int(LEAVES / (1.0 + np.exp(-z / 2.0))), LEAVES - 1)
    signed = z if happened else -z
    for k in range(len(EXPERT_SLOPES)):
        powers[k] = np.exp(-EXPERT_SLOPES[k] * signed)
    for j in range(N_LINES):
        e[j] = powers[SLOPE_OF[j]]
    for j in range(N_LINES):
        q[j] = per / (1.0 + e[j] * FACTORS[happened, j])
    for j in range(len(NOISE)):
        q[N_LINES + j] = (1.0 - NOISE[j]) + 0.5 * NOISE[j] * per
    odds = np.exp(-signed)
    for k in range(11):
        d[k] = per / (1.0 + odds * SHIFT_FACTORS[happened, k])
    d[0] = 1.0 if right >= 1e-100 else right * per
    if weight != 1.0:
        for j in range(N_FLAT):
            q[j] = 1.0 + weight * (q[j] - 1.0)
        for k in range(11):
            d[k] = 1.0 + weight * (d[k] - 1.0)
    return leaf


@inlined
def climbed(tree: FloatArray, stop: FloatArray, leaf: int, d: FloatArray) -> float:
    """Update the tree of shifts by the factors of one row; return the factor of the tree's wealth.

    ``tree`` (2 LEAVES, 11) has the shares of 11 shifts of the log-odds at each node, ``stop``
    (2 LEAVES,) the odds of stopping there, ``d`` (11,) the factors of the shifts for the row in
    ``leaf``. Both arrays are changed in place.
    """
    i, gained = leaf + LEAVES, 0.0
    while i >= 1:
        gain = 0.0
        for k in range(11):
            gain += tree[i, k] * d[k]
        for k in range(11):
            x = tree[i, k] * d[k] / gain
            tree[i, k] = x if x > 1e-280 else 0.0
        if i >= LEAVES:
            gained = gain
        else:
            both = (stop[i] * gain + gained) / (1.0 + stop[i])
            stop[i] = min(max(stop[i] * gain / gained, 1e-250), 1e250)
            gained = both
        i >>= 1
    return gained


@dense_kernel
def bet_two(rows: FloatArray, mode: int, state: FloatArray, path: FloatArray) -> None:
    """Bet on rows (n, 4) with columns p(event), p(no event), event 0/1, weight.

    ``mode`` is STATIC, CHANGE or MONITOR, as in :func:`bet`. ``state``, the wealth of all experts,
    is changed in place; ``path`` (n,) receives the log wealth after each row. Some 0.3 µs a row.
    """
    s, flat = state[:SCALARS], state[SCALARS:LATE_AT]
    late = state[LATE_AT:TREE_AT]
    tree = state[TREE_AT:STOP_AT].reshape(2 * LEAVES, 11)
    stop = state[STOP_AT:TWO_CLASSES]
    q, e, d, powers = (
        np.empty(N_FLAT),
        np.empty(N_LINES),
        np.empty(11),
        np.empty(len(EXPERT_SLOPES)),
    )
    for t in range(len(rows)):
        p, rest, weight = rows[t, 0], rows[t, 1], rows[t, 3]
        happened = 1 if rows[t, 2] > 0.5 else 0
        right = p if happened else rest
        if right <= 0.0:
            s[IMPOSSIBLE] += 1.0
        elif p > 0.0 and rest > 0.0 and weight > 0.0:  # a certain row is no bet
            leaf = factors(p, rest, happened, weight, powers, e, q, d)
            s[FLAT] = multiplied(flat, q)
            s[TREE] += np.log(climbed(tree, stop, leaf, d))
            if mode != STATIC:
                i = (leaf + LEAVES) >> 1
                while i >= 2:
                    for k in range(10):
                        j = N_FLAT + 10 * (i - 2) + k
                        x = late[j] * d[k + 1]
                        x = x if x > 1e-280 else 0.0
                        s[LOCAL] += x - late[j]
                        late[j] = x
                    i >>= 1
                s[LATE] = multiplied(late, q) + s[LOCAL]
        settled(s, mode, flat, late, LATE_PRIOR, 1.0)
        path[t] = s[NOW] = wealth(s, mode, TREE_SHARE, 1.0)


@dense_kernel
def bet_times(
    rows: FloatArray, sizes: IntArray, mode: int, state: FloatArray, path: FloatArray
) -> None:
    """Bet on rows in T groups whose rows may depend on each other, with one bet for each group.

    ``rows`` (n, 4) are p(event), p(no event), event 0/1 and weight. ``sizes`` (T,) are the rows of
    each group, and ``path`` (T,) receives the log wealth after each; ``mode`` is STATIC, CHANGE or
    MONITOR, and ``state``, the wealth of all experts, is changed in place, as in :func:`bet`. The
    factor of an expert for a group is the mean of its factors for the rows, each of which has mean
    1 given the past; the tree likewise. The shares of the tree may be any function of the past;
    each of m rows moves them as a bet of one m-th.
    """
    s, flat = state[:SCALARS], state[SCALARS:LATE_AT]
    late = state[LATE_AT:TREE_AT]
    local = late[N_FLAT:]
    tree = state[TREE_AT:STOP_AT].reshape(2 * LEAVES, 11)
    stop = state[STOP_AT:TWO_CLASSES]
    q, e, d, powers = (
        np.empty(N_FLAT),
        np.empty(N_LINES),
        np.empty(11),
        np.empty(len(EXPERT_SLOPES)),
    )
    mean, cells = np.empty(N_FLAT), np.empty(10 * N_CELLS)
    new_tree, new_stop, old_tree, old_stop = tree.copy(), stop.copy(), tree.copy(), stop.copy()
    first = 0
    for g in range(len(sizes)):
        m = 0
        for t in range(first, first + sizes[g]):
            m += rows[t, 0] > 0.0 and rows[t, 1] > 0.0 and rows[t, 3] > 0.0
            s[IMPOSSIBLE] += (rows[t, 0] if rows[t, 2] > 0.5 else rows[t, 1]) <= 0.0
        if m > 0:
            mean[:], cells[:], gained = 0.0, 1.0, 0.0
            new_tree[:], new_stop[:] = tree, stop
            for t in range(first, first + sizes[g]):
                p, rest, weight = rows[t, 0], rows[t, 1], rows[t, 3]
                if p > 0.0 and rest > 0.0 and weight > 0.0:
                    happened = 1 if rows[t, 2] > 0.5 else 0
                    leaf = factors(p, rest, happened, weight, powers, e, q, d)
                    for j in range(N_FLAT):
                        mean[j] += q[j] / m
                    i = (leaf + LEAVES) >> 1
                    while i >= 2:
                        for k in range(10):
                            cells[10 * (i - 2) + k] += (d[k + 1] - 1.0) / m
                        i >>= 1
                    old_tree[:], old_stop[:] = tree, stop
                    gained += climbed(old_tree, old_stop, leaf, d) / m
                    for k in range(11):
                        d[k] = 1.0 + (d[k] - 1.0) / m
                    climbed(new_tree, new_stop, leaf, d)
            tree[:], stop[:] = new_tree, new_stop
            s[FLAT] = multiplied(flat, mean)
            s[TREE] += np.log(gained)
            if mode != STATIC:
                s[LOCAL] = multiplied(local, cells)
                s[LATE] = multiplied(late, mean) + s[LOCAL]
        first += sizes[g]
        settled(s, mode, flat, late, LATE_PRIOR, float(sizes[g]))
        path[g] = s[NOW] = wealth(s, mode, TREE_SHARE, 1.0)


@dense_kernel
def bet_many(
    probs: FloatArray, labels: IntArray, weights: FloatArray, mode: int, state: FloatArray,
    prior: FloatArray, path: FloatArray,
) -> None:  # fmt: skip
    """Bet on n rows of K > 2 classes by experts on all classes, after the bets on the top class.

    ``probs`` (n, K), ``labels`` (n,), ``weights`` (n,) are the rows and ``mode`` is STATIC, CHANGE
    or MONITOR, as in :func:`bet`; ``state``, the wealth of the experts on all classes, is changed
    in place, and ``prior`` are the shares of new late experts. ``path`` (n,) holds the log wealth
    of the bets on the top class after each row; it receives the log wealth of both kinds of bets.
    """
    n, K = probs.shape
    n_flat, n_noise = len(prior), len(NOISE)
    s, flat = state[:SCALARS], state[SCALARS : SCALARS + n_flat]
    late = state[SCALARS + n_flat : SCALARS + 2 * n_flat]
    nested = state[SCALARS + 2 * n_flat :].reshape(K, 17)
    late_prior = prior / prior.sum()
    q, d, logs, mass = np.empty(n_flat), np.empty(17), np.empty(K), np.empty(2 * K)
    for t in range(n):
        y, right, weight = labels[t], probs[t, labels[t]], weights[t]
        if right <= 0.0:
            s[IMPOSSIBLE] += 1.0
        elif weight > 0.0:
            per, possible = 1.0 / max(right, 1e-100), 0
            for k in range(K):
                possible += probs[t, k] > 0.0
                logs[k] = np.log(max(probs[t, k], LOG_ODDS_CLIP))
                mass[K + k] = probs[t, k]
            for j in range(16):
                total = 0.0
                for k in range(K):
                    if probs[t, k] > 0.0:
                        total += np.exp(POWERS[j] * (logs[k] - logs[y]))
                q[j] = per / total
            for j in range(n_noise):
                q[16 + j] = (1.0 - NOISE[j]) + NOISE[j] / possible * per
            o = 16 + n_noise
            for k in range(K):
                for j in range(16):
                    moved = CLASS_FACTORS[j] if k == y else 1.0
                    q[o] = moved / (1.0 + probs[t, k] * (CLASS_FACTORS[j] - 1.0))
                    o += 1
                for j in range(n_noise):
                    q[o] = (1.0 - NOISE[j]) + (NOISE[j] * per if k == y else 0.0)
                    if probs[t, k] <= 0.0:
                        q[o] = 1.0
                    o += 1
            for j in range(n_flat):
                q[j] = 1.0 + weight * (q[j] - 1.0)
            s[FLAT] = multiplied(flat, q)
            for i in range(K - 1, 0, -1):
                mass[i] = mass[2 * i] + mass[2 * i + 1]
            i, gained = K + y, 1.0
            while i > 1:
                up = i >> 1
                share = min(mass[i] / mass[up], 1.0)
                gain = 0.0
                for j in range(17):
                    factor = CLASS_FACTORS[j - 1] if j > 0 else 1.0
                    factor = factor if i % 2 == 0 else 1.0 / factor
                    d[j] = 1.0 + weight * (factor / (1.0 + share * (factor - 1.0)) - 1.0)
                    gain += nested[up, j] * d[j]
                for j in range(17):
                    x = nested[up, j] * d[j] / gain
                    nested[up, j] = x if x > 1e-280 else 0.0
                gained *= gain
                i = up
            s[TREE] += np.log(gained)
            if mode != STATIC:
                s[LATE] = multiplied(late, q)
        settled(s, mode, flat, late, late_prior, 1.0)
        classwise = wealth(s, mode, NESTED_SHARE, 1.0 - TOP_SHARE)
        path[t] = s[NOW] = np.logaddexp(classwise, np.log(TOP_SHARE) + path[t])
