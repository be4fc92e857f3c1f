"""Errors of resampled rows in cells that are many, or made anew from each sample.

All but that of a tree, which takes what was drawn, are functions of how often each (row, label) was
drawn, of shape (n, K, lanes). ``code`` is the number of a distance in ``distances.NAMED``;
``largest`` takes the largest distance of a cell in place of the average.
"""

from __future__ import annotations

import numpy as np

from caltest._base.compiled import inlined, kernel


@inlined
def _added(gap, d, code):  # type: ignore[no-untyped-def]
    # One more component of a distance; codes follow distances.NAMED.
    if code <= 1:
        return gap + abs(d)
    return gap + d * d if code <= 3 else max(gap, abs(d))


@inlined
def _measured(gap, size, code):  # type: ignore[no-untyped-def]
    # The distance of the cell's means, times its size.
    if code == 0:
        return 0.5 * gap
    return np.sqrt(gap) if code == 2 else gap / size if code == 3 else gap


@kernel
def joint_errors(  # type: ignore[no-untyped-def]
    counts, probs, starts, code, largest, errors_out
):
    """Add the binned errors of vectors in fixed cells, O(n K) for each lane."""
    # Rows of a cell lie together, and only its sums are kept.
    n, n_classes, lanes = counts.shape
    events, predicted = np.empty((n_classes, lanes), dtype=np.int32), np.empty((n_classes, lanes))
    gap, times, size = np.empty(lanes), np.empty(lanes), np.empty(lanes)
    row = np.empty(lanes, dtype=np.uint8)
    for b in range(starts.size - 1):
        size[:] = 0.0
        for i in range(starts[b], starts[b + 1]):
            row[:] = 0
            fresh = i == starts[b]  # many cells have a row or two: set what others add to
            for k in range(n_classes):
                count, total = counts[i, k], events[k]
                if fresh:
                    for q in range(lanes):
                        row[q] = np.uint8(row[q] + count[q])
                        total[q] = np.int32(count[q])
                else:
                    for q in range(lanes):
                        row[q] = np.uint8(row[q] + count[q])
                        total[q] += np.int32(count[q])
            for q in range(lanes):
                times[q] = np.float64(np.int32(row[q]))
                size[q] += times[q]
            for k in range(n_classes):
                p, mass = probs[i, k], predicted[k]
                if fresh:
                    for q in range(lanes):
                        mass[q] = p * times[q]
                else:
                    for q in range(lanes):
                        mass[q] += p * times[q]
        gap[:] = 0.0
        for k in range(n_classes):
            total, mass = events[k], predicted[k]
            if code <= 1:
                for q in range(lanes):
                    gap[q] += abs(np.float64(total[q]) - mass[q])
            else:
                for q in range(lanes):
                    gap[q] = _added(gap[q], np.float64(total[q]) - mass[q], code)
        for q in range(lanes):
            if size[q] > 0.0:
                d = _measured(gap[q], size[q], code)
                errors_out[q] = max(errors_out[q], d / size[q]) if largest else errors_out[q] + d
    if not largest:
        for q in range(lanes):
            errors_out[q] /= n


@kernel
def quantile_errors(counts, p, m, code, largest, errors_out):  # type: ignore[no-untyped-def]
    """Add the errors in equal-mass cells of rows sorted by ``p``, O(n) for each lane."""
    # A cell ends with the value at which the j-th of m equal parts is full, at a
    # total of `full` rows.
    n, _, lanes = counts.shape
    gap = np.zeros(lanes)
    total, begun = np.zeros(lanes, dtype=np.int32), np.zeros(lanes, dtype=np.int32)
    part = np.ones(lanes, dtype=np.int64)
    full = np.full(lanes, -(-n // m) if m > 1 else n + 1, dtype=np.int32)
    for i in range(n):
        value, ends = p[i], np.int32(0)
        for q in range(lanes):
            hits = np.int32(counts[i, 0, q])
            rows = hits + np.int32(counts[i, 1, q])
            gap[q] += value * np.float64(rows) - np.float64(hits)
            total[q] += rows
            ends += np.int32(total[q] >= full[q])
        last = i == n - 1
        if not last and (ends == 0 or p[i + 1] == value):
            continue
        for q in range(lanes):
            size = total[q] - begun[q]
            if size > 0 and (last or total[q] >= full[q]):
                d = _measured(_added(_added(0.0, gap[q], code), gap[q], code), size, code)
                errors_out[q] = max(errors_out[q], d / size) if largest else errors_out[q] + d / n
                gap[q] = 0.0
                begun[q] = total[q]
                while part[q] < m and np.int64(total[q]) * m >= part[q] * n:
                    part[q] += 1
                full[q] = -(-part[q] * n // m) if part[q] < m else n + 1


@kernel
def tree_error(  # type: ignore[no-untyped-def]
    probs, pairs, by_mean, smallest_node, smallest_part, code, largest
):
    """Return the error in the tree of one sample, O(n K) for each of its levels.

    ``pairs`` are the numbers i K + k of the pairs of a row and a label, as often as drawn.
    """
    # A node is a stretch of `pairs`, its left part is moved to the front.
    n, n_classes = probs.shape
    n_axes = 1 if n_classes == 2 else n_classes
    sums, squares, events = np.empty(n_classes), np.empty(n_classes), np.empty(n_classes)
    waiting = [(0, n)]
    error = 0.0
    while len(waiting) > 0:
        first, last = waiting.pop()
        node, size = pairs[first:last], last - first
        sums[:], squares[:], events[:] = 0.0, 0.0, 0.0
        for pair in node:
            events[pair % n_classes] += 1.0
            for k in range(n_classes):
                v = probs[pair // n_classes, k]
                sums[k] += v
                squares[k] += v * v
        n_below = 0
        if size >= smallest_node:
            axis = np.argmax((squares / size - (sums / size) ** 2)[:n_axes])
            values = probs[:, axis][node // n_classes]
            below = values < (sums[axis] / size if by_mean else np.median(values))
            n_below = below.sum()
        if min(n_below, size - n_below) >= smallest_part:
            left, right = node[below], node[~below]
            node[:n_below], node[n_below:] = left, right
            waiting += [(first + n_below, last), (first, first + n_below)]
            continue
        gap = 0.0
        for k in range(n_classes):
            gap = _added(gap, events[k] - sums[k], code)
        gap = _measured(gap, size, code)
        error = max(error, gap / size) if largest else error + gap / n
    return error
