"""Slow twins of the bounds of binned errors, cell by cell and draw by draw, in plain Python."""

import math

import numpy as np
from scipy.special import ndtri


def facts(probs, labels, cells, clusters=None, weights=None):
    """Weight, mean predictions, S, V0, V and H of every cell and class."""
    k = 1 if probs.shape[1] == 2 else probs.shape[1]
    found = {name: [] for name in ("size", "predicted", "sums", "null", "variance", "hidden")}
    plain = clusters is None and weights is None
    for c in sorted(set(cells.tolist())):
        rows = [i for i in range(len(cells)) if cells[i] == c]
        w = [1.0 if weights is None else float(weights[i]) for i in rows]
        m = math.fsum(w)
        found["size"].append(m)
        each = {name: [] for name in ("predicted", "sums", "null", "variance", "hidden")}
        for j in range(k):
            p = [float(probs[i, j]) for i in rows]
            r = [(labels[i] == j) - q for i, q in zip(rows, p, strict=True)]
            mean = math.fsum(a * q for a, q in zip(w, p, strict=True)) / m
            total = math.fsum(a * x for a, x in zip(w, r, strict=True))
            null = math.fsum(a * q * (1.0 - q) for a, q in zip(w, p, strict=True))
            cross = math.fsum(a * a * (q - mean) * x for a, q, x in zip(w, p, r, strict=True))
            sums, mass = {}, {}
            for i, a, x in zip(rows, w, r, strict=True):
                u = i if clusters is None else clusters[i]
                sums[u], mass[u] = sums.get(u, 0.0) + a * x, mass.get(u, 0.0) + a
            own = math.fsum(a * a for a in mass.values())
            if len(mass) > 1:
                squares = math.fsum(s * s for s in sums.values())
                variance = max(m * m * squares - total**2 * own, 0.0) / (m * m - own)
            else:
                variance = 0.0
            if plain and len(rows) > 1:
                scatter = math.fsum((x - total / m) ** 2 for x in r) * m / (m - 1)
                assert math.isclose(scatter, variance, abs_tol=1e-9)
            each["predicted"].append(mean)
            each["sums"].append(total)
            each["null"].append(null)
            each["variance"].append(variance)
            each["hidden"].append(max(-2.0 * cross, 0.0))
        for name, values in each.items():
            found[name].append(values)
    return {name: np.array(values) for name, values in found.items()}


def events(mean, z):
    """A Poisson count less its mean, from a normal: none below its chance, else Cornish-Fisher."""
    if z <= ndtri(math.exp(-mean)):
        return -mean
    return max(round(mean - 1 / 6 + z * math.sqrt(mean) + z * z / 6), 1) - mean


def noise(c, k, most):
    """Calibrated noise, and Poisson counts of the variance that the hypothesis adds."""
    draws = np.empty_like(c.normal)
    most = np.broadcast_to(most, c.sums.shape)
    for b, cell, j in np.ndindex(draws.shape):
        g = float(c.grain[cell, j])
        n, p = float(c.size[cell]), float(c.predicted[cell, j])
        v0, v = float(c.null_variance[cell, j]), float(c.variance[cell, j])
        step = k * float(c.sums[cell, j]) / n
        allowed = g * most[cell, j]
        if k > 0:
            allowed = max(allowed, c.hidden[cell, j])
        added = min(max(v - v0, g * n * step * (1 - 2 * p - step), 0.0), allowed)
        z = float(c.normal[b - 1, cell, j])
        value = math.sqrt(v0) * float(c.calibrated[b, cell, j])
        q = min(max(p + step, 0.0), 1.0)
        rare, sign = (1.0 - q, -1.0) if q > 0.5 else (q, 1.0)
        scale = 1.0 if n / g * rare < 10 else math.sqrt(1.0 - rare)
        count = events(added / g**2 / (1.0 - rare), sign * z)
        draws[b, cell, j] = value + sign * scale * g * count
    return draws


def implied(c, shift):
    """The variance of p + shift towards 1/2, and at least V0 and V."""
    found = np.empty_like(c.sums)
    for cell, j in np.ndindex(found.shape):
        slope = abs(1.0 - 2.0 * c.predicted[cell, j])
        s = min(shift[cell, j], slope / 2.0)
        v0 = c.null_variance[cell, j]
        more = c.grain[cell, j] * c.size[cell] * s * (slope - s)
        found[cell, j] = max(v0 + more, v0, c.variance[cell, j])
    return found


def drawn(c, shift):
    """Counts as rounded Cornish-Fisher quantiles, and their variances: both (L, d, B)."""
    shape = (*c.sums.shape, len(c.normal))
    sums, variances = np.empty(shape), np.empty(shape)
    for cell, j, b in np.ndindex(shape):
        g, p = float(c.grain[cell, j]), float(c.predicted[cell, j])
        n, z = float(c.size[cell]) / g, float(c.normal[b, cell, j])
        v0, hidden = float(c.null_variance[cell, j]), float(c.hidden[cell, j])
        q = p + shift[cell, j] / g / n
        less = (v0 + hidden) / g**2 - n * p * (1.0 - p)
        sd = math.sqrt(max(n * q * (1.0 - q) + less, 0.0))
        skew = 1.0 - 2.0 * q if q != 0.5 else 1e-9
        z = max(z, -3.0 * sd / skew) if skew > 0 else min(z, -3.0 * sd / skew)
        count = min(max(round(n * q + z * sd + skew / 6.0 * (z * z - 1.0)), 0), n)
        scatter = max(count * (1.0 - count / n) + less, 0.0)
        variances[cell, j, b] = g * g * (scatter * n / (n - 1.0) if n > 1 else sd * sd)
        seen = float(c.sums[cell, j]) / g
        sums[cell, j, b] = g * (count - round(seen + n * p) + seen)
    return sums, variances


def share_error(c, size):
    n = float(c.size.sum())
    mean = math.fsum(m * s for m, s in zip(c.size, size, strict=True)) / n
    if c.parts is not None:
        moved = {}
        for u, cell, mass in zip(c.parts.unit, c.parts.cell, c.parts.mass, strict=True):
            moved[u] = moved.get(u, 0.0) + mass * (size[cell] - mean)
        return math.sqrt(math.fsum(x * x for x in moved.values())) / n
    spread = math.fsum(m * (s - mean) ** 2 for m, s in zip(c.size, size, strict=True)) / n
    return math.sqrt(spread / n)


def share_noise(c, size):
    """Mean less the gamma quantile of Fay & Feuer, that by Wilson & Hilferty's cube."""
    n = float(c.size.sum())
    y = float(c.size @ size) / n
    w = max(0.0, *((s - y) * max(g) / n for s, g in zip(size, c.grain, strict=True)))
    v = share_error(c, size) ** 2
    if v + w * w < 1e-24 * y * y or y == 0.0:
        return np.zeros(len(c.shares))
    shape, scale = (y + w) ** 2 / (v + w * w), (v + w * w) / (y + w)
    cube = 1.0 - 1.0 / (9.0 * shape) + c.shares / (3.0 * math.sqrt(shape))
    return y - scale * shape * np.maximum(cube, 0.0) ** 3


def unit(c):
    found = np.empty_like(c.sums)
    for b, j in np.ndindex(found.shape):
        found[b, j] = math.sqrt(max(c.null_variance[b, j], c.variance[b, j], 1e-12 * c.size[b]))
    return found


def middle(c):
    """Shifts of the size of the noise towards equal probabilities."""
    u = unit(c)
    found = np.empty_like(u)
    for b in range(len(u)):
        if u.shape[1] == 1:
            found[b, 0] = -u[b, 0] if c.predicted[b, 0] > 0.5 else u[b, 0]
            continue
        top = max(range(u.shape[1]), key=lambda j, b=b: c.predicted[b, j])
        signed = [-u[b, j] if j == top else u[b, j] for j in range(u.shape[1])]
        centred = [s - sum(signed) / len(signed) for s in signed]
        total, wanted = (math.fsum(x * x for x in xs) for xs in (centred, u[b]))
        found[b] = [s * math.sqrt(wanted / total) for s in centred]
    return found


def share_reaching(values, t):
    """(1 + b) / (1 + B), with rounding counted as a tie."""
    close = 1e-10 * abs(t) + 1e-12 * max(map(abs, values)) + 1e-15
    return (1 + sum(v >= t - close for v in values)) / (1 + len(values))


def last(holds, high):
    """The end of the values, from 0 on, for which ``holds``, when it does not hold at ``high``."""
    low = 0.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def first_error(c):
    return math.fsum(abs(s) for s in c.sums.ravel()) / float(c.size.sum())


def second_error(c):
    squares = (c.sums[b] @ c.sums[b] / c.size[b] for b in range(len(c.size)))
    return math.fsum(squares) / float(c.size.sum())


def first_corrected(c):
    """2 T₁ less the mean of T₁ when the sums are normal around those observed, by quadrature."""
    z = np.linspace(-12.0, 12.0, 48_001)
    density = np.exp(-0.5 * z * z) / math.sqrt(2 * math.pi) * (z[1] - z[0])
    total = 0.0
    for s, v in zip(c.sums.ravel(), c.variance.ravel(), strict=True):
        total += 2 * abs(s) - float(np.abs(s + math.sqrt(v) * z) @ density)
    return total / float(c.size.sum())


def second_corrected(c):
    return second_error(c) - float((c.variance / c.size[:, None]).sum()) / float(c.size.sum())


def first_low(c, alpha):
    n, t = float(c.size.sum()), first_error(c)
    error = share_error(c, np.abs(c.sums / c.size[:, None]).sum(axis=1))

    def refuted(theta):
        if theta >= t:
            return False
        spread = np.abs(noise(c, theta / t, n * theta)).sum(axis=(1, 2)) / n
        return share_reaching(theta + spread + theta / t * error * c.shares, t) <= alpha

    return last(refuted, t)


def second_low(c, alpha):
    n, t = float(c.size.sum()), second_error(c)
    error = share_error(c, ((c.sums / c.size[:, None]) ** 2).sum(axis=1))
    most = np.sqrt(c.size[:, None] * n * t)

    def refuted(k):
        if k >= 1.0:
            return False
        sums = k * c.sums + noise(c, k, k * most)
        # below a label of variation whole counts, if these are larger
        whole = c.sums + c.grain * np.rint((sums - c.sums) / c.grain)
        sure = (c.null_variance < c.grain**2) & (abs(whole) > abs(sums))
        sums = np.where(sure, whole, sums)
        values = (sums**2 / c.size[:, None]).sum(axis=(1, 2)) / n + k * k * error * c.shares
        return share_reaching(values, (1.0 - 1e-6) * t) <= alpha

    return last(refuted, 1.0) ** 2 * t


def first_high(c, alpha):
    n, u = float(c.size.sum()), unit(c)
    error = share_error(c, np.abs(c.sums / c.size[:, None]).sum(axis=1))
    signs = np.where(c.sums < 0.0, -1.0, 1.0)

    def values(theta, share):
        shift = theta * n * u * signs / u.sum()
        extra = np.maximum(implied(c, np.abs(shift) / c.size[:, None]) - c.variance, 0.0)
        found = []
        for b in range(len(c.normal)):
            shown = np.abs(shift + np.sqrt(c.variance) * c.normal[b])
            rest = signs * np.sqrt(extra) * c.normal[b - 1]
            found.append(float((shown + rest).sum()) / n + share * error * c.shares[b])
        return np.array(found)

    t = max(first_error(c), float(np.quantile(values(0.0, 0.0), 0.25)))
    return last(lambda x: share_reaching(-values(x, min(1.0, x / t)), -t) >= alpha, 50.0)


def second_high(c, alpha):
    n, m = float(c.size.sum()), middle(c)
    towards = np.array([(-s if s @ x < 0 else s) + x for s, x in zip(c.sums, m, strict=True)])
    ends = np.where(towards > 0.0, 1.0, 0.0)
    room = c.size[:, None] * (ends - c.predicted)
    reached = max(abs(r / t) for r, t in zip(room.ravel(), towards.ravel(), strict=True))
    largest = math.fsum((room**2 / c.size[:, None]).ravel()) / n

    def shift(k):
        moved = np.clip(c.predicted + k * towards / c.size[:, None], 0.0, 1.0)
        return c.size[:, None] * (moved - c.predicted)

    def beyond(k):
        return largest * (k / reached - 1.0) if k > reached else 0.0

    def values(k):
        sums, variance = drawn(c, shift(k))
        squares = ((sums**2 - variance) / c.size[:, None, None]).sum(axis=(0, 1)) / n
        gaps = shift(min(k, 1.0)) / c.size[:, None]
        return squares + beyond(k) + share_noise(c, (gaps**2).sum(axis=1))

    t = max(second_corrected(c), float(np.quantile(values(0.0), 0.25)))

    def holds(k):
        return share_reaching(-values(k), -t) >= alpha

    low, high = 0.0, 1.0  # doubling first: counts are whole, and their shares no falling function
    while holds(high):
        low, high = high, 2.0 * high
    k = low + last(lambda x: holds(low + x), high - low)
    return float((shift(k) ** 2 / c.size[:, None]).sum()) / n + beyond(k)
