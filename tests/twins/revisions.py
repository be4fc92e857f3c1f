"""A slow twin of the e-process of revisions, written from its definition on a common clock."""

import numpy as np

FLOOR = 0.01


def experts():
    """List the 18 experts as (rule, sign, fraction)."""
    rules = ("drift", "momentum", "movement")
    return [(rule, sign, f) for rule in rules for sign in (1, -1) for f in (0.1, 0.35, 0.9)]


def factor(p, x, stake, fraction):
    """Return the expected likelihood ratio of a bet, at the next forecast x."""
    if stake > 0.0:
        return 1.0 + fraction * stake * (x - p) / max(p, FLOOR)
    return 1.0 + fraction * -stake * (p - x) / max(1.0 - p, FLOOR)


def log_evidence(paths, groups=None, least=0.0):
    """Return the log e-value after each time of paths (Q, T), all questions open throughout."""
    count = len(paths)
    groups = np.arange(count) if groups is None else np.asarray(groups)
    wealth = np.zeros((18, len(paths[0]) - 1))
    for e, (rule, sign, fraction) in enumerate(experts()):
        placed, last, value = paths[:, 0].copy(), np.zeros(count), np.ones(count)
        for t in range(1, len(paths[0])):
            growth = np.ones(count)
            for q in range(count):
                signal = {"drift": 1.0, "momentum": last[q], "movement": 1.0 - 2.0 * placed[q]}
                x = paths[q, t]
                now = factor(placed[q], x, sign * signal[rule], fraction)
                growth[q], value[q] = now / value[q], now
                if x != placed[q] and abs(x - placed[q]) >= least - 1e-12:
                    last[q], placed[q], value[q] = np.sign(x - placed[q]), x, 1.0
            means = [growth[groups == g].mean() for g in np.unique(groups)]
            wealth[e, t - 1] = np.log(means).sum()
    return np.log(np.exp(np.cumsum(wealth, axis=1)).mean(axis=0))


def lattice_martingale(start, length, lattice=(0.0, 0.1, 0.25, 0.5, 0.6, 0.9, 1.0)):
    """List all paths of a martingale whose steps depend on its past, and their probabilities."""
    lattice = np.array(lattice)

    def branches(past):
        p = past[-1]
        if p in (0.0, 1.0):
            return [(p, 1.0)]
        k = len(past) + round(100 * sum(past))
        low, high = lattice[lattice < p], lattice[lattice > p]
        a, b = low[k % len(low)], high[(k // 3) % len(high)]
        stay, w = (0.3 if k % 2 else 0.0), (p - a) / (b - a)
        return [(a, (1 - stay) * (1 - w)), (b, (1 - stay) * w), *[(p, stay)] * (stay > 0)]

    found = [((start,), 1.0)]
    for _ in range(length):
        found = [((*past, x), q * w) for past, q in found for x, w in branches(past)]
    return np.array([past for past, _ in found]), np.array([q for _, q in found])
