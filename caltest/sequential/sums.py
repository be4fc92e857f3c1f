"""What the sums of many rows do to the wealth of every expert."""

from __future__ import annotations

import numpy as np

from caltest._base.arrays import FloatArray
from caltest.bets import kernels
from caltest.bets.kernels import CLIP, LEAVES, SCALARS
from caltest.errors import StatisticError
from caltest.problem import TallyProblem
from caltest.tally import AnyTally
from caltest.tally.rows import UNIT

#: What is lost beside the largest wealth, and where shares and pools are cut off, in logs.
LEAST, CUT = 1e-280, 575.0


def bet_sums(tally: AnyTally, mode: int, state: FloatArray) -> None:
    """Bet on all rows of a tally at once; the state of two classes is moved on in place.

    An expert says q of a prediction p. In micro-cell c he tilts by θ = logit q − logit p at its
    centre, so that the rows earn exp(θ Σ y − Σ log(1 − p + p e^θ)), of mean 1 under calibration
    for any θ that is a function of the cell. The second sum is that of the atoms, which are no
    less: the fourth derivative of the logarithm in p is negative (the error of Gauss's quadrature),
    and so is the second, where one atom stands for several rows. O(C) for each of 212 experts.
    """
    micro = TallyProblem.of(tally)
    if micro.tally.strata.tolist() != [1.0]:
        raise StatisticError("a monitor does not take tallies of weighted rows: pass the rows")
    s, flat = state[:SCALARS], state[SCALARS : kernels.LATE_AT]
    late = state[kernels.LATE_AT : kernels.TREE_AT]
    s[kernels.IMPOSSIBLE] += tally.impossible.size
    earned, local = _earned(micro)
    s[kernels.FLAT], s[kernels.FLAT_SCALE] = _multiplied(flat, earned, s[kernels.FLAT_SCALE])
    tree = state[kernels.TREE_AT : kernels.STOP_AT].reshape(2 * LEAVES, 11)
    from scipy.special import logsumexp

    with np.errstate(divide="ignore"):
        joint = np.log(tree) + local
    at_node = logsumexp(joint, axis=1)
    tree[:] = np.exp(joint - at_node[:, None])
    tree[tree < LEAST] = 0.0
    stop, subtree = state[kernels.STOP_AT :], at_node.copy()
    for i in range(LEAVES - 1, 0, -1):
        below, stays = subtree[2 * i] + subtree[2 * i + 1], np.log(stop[i])
        subtree[i] = np.logaddexp(stays + at_node[i], below) - np.log1p(stop[i])
        stop[i] = np.exp(np.clip(stays + at_node[i] - below, -CUT, CUT))
    s[kernels.TREE] += subtree[1]
    if s[kernels.LATE] > 0.0:
        each = np.append(earned, local[2:LEAVES, 1:])
        s[kernels.LATE], s[kernels.LATE_SCALE] = _multiplied(late, each, s[kernels.LATE_SCALE])
        if s[kernels.LATE_SCALE] < -CUT:
            late[:], s[kernels.LATE], s[kernels.LATE_SCALE] = 0.0, 0.0, 0.0
        s[kernels.LOCAL] = late[kernels.N_FLAT :].sum()
    kernels.settled(s, mode, flat, late, kernels.LATE_PRIOR, float(tally.n))
    s[kernels.NOW] = kernels.wealth(s, mode, kernels.TREE_SHARE, 1.0)


def _multiplied(pool: FloatArray, earned: FloatArray, scale: float) -> tuple[float, float]:
    """Multiply wealth in place, given logarithms; return its sum and its scale."""
    with np.errstate(divide="ignore"):
        logs = np.log(pool) + earned
    top = float(logs.max())
    pool[:] = np.exp(logs - top)
    pool[pool < LEAST] = 0.0
    return float(pool.sum()), scale + top


def _earned(micro: TallyProblem) -> tuple[FloatArray, FloatArray]:
    """Return what flat experts earn, and shifts at every node of the tree, in logarithms."""
    open_cells = np.flatnonzero((micro.centre > 0.0) & (micro.rest > 0.0))
    p, rest = micro.centre[open_cells], micro.rest[open_cells]
    count, events = micro.count[open_cells], micro.labels[open_cells]
    half, atoms = micro.half[open_cells], micro.atoms.take(open_cells)
    wide = half >= np.minimum(p, rest)  # of positions beside 0 and 1 only the mean is sure
    low, high = np.where(wide, micro.probs[open_cells].T, 0.0)
    times = np.where(wide, [count, np.zeros_like(count)], atoms.times)
    low, high = np.where(wide, low, atoms.p), np.where(wide, high, atoms.rest)
    rounded = np.where(wide | (count == 1), 0.0, 4.0 / UNIT * count * half**2)
    logit = np.log(p) - np.log(rest)
    z = np.log(np.maximum(p, CLIP)) - np.log(np.maximum(rest, CLIP))

    def factor(stated: FloatArray) -> FloatArray:
        tilt = stated - logit
        up, size = tilt >= 0.0, np.abs(tilt)
        more = np.expm1(size)
        lost = (times * np.log1p(np.where(up, low, high) * more)).sum(axis=0)
        reach = more / (1.0 + np.where(up, p, rest) * more)
        return size * np.where(up, events, count - events) - lost - rounded * reach**2

    flat = [factor(b * z + a).sum() for b, a in kernels.LINES]
    for noise in kernels.NOISE:
        q, other = ((1.0 - noise) * x + 0.5 * noise for x in (p, rest))
        flat.append(factor(np.log(q) - np.log(other)).sum())
    leaf = np.minimum((LEAVES / (1.0 + np.exp(-z / 2.0))).astype(np.int64), LEAVES - 1)
    local = np.zeros((2 * LEAVES, 11))
    for k, shift in enumerate(kernels.SHIFTS[1:], start=1):
        local[LEAVES:, k] = np.bincount(leaf, factor(z + shift), minlength=LEAVES)
    for i in range(LEAVES - 1, 0, -1):
        local[i] = local[2 * i] + local[2 * i + 1]
    return np.array(flat), local
