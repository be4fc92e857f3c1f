"""Errors of resampled rows in cells that are many, or made anew from each sample.

All are functions of how often each (row, label) was drawn, of shape (n, K, lanes), or (n, K) for a
tree. ``code`` is the number of a distance in ``distances.NAMED``; ``largest`` takes the largest
distance of a cell in place of the average.
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
    gap, drawn, size = np.empty(lanes), np.empty(lanes), np.empty(lanes)
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
                drawn[q] = np.float64(np.int32(row[q]))
                size[q] += drawn[q]
            for k in range(n_classes):
                p, mass = probs[i, k], predicted[k]
                if fresh:
                    for q in range(lanes):
                        mass[q] = p * drawn[q]
                else:
                    for q in range(lanes):
                        mass[q] += p * drawn[q]
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
            drawn = hits + np.int32(counts[i, 1, q])
            gap[q] += value * np.float64(drawn) - np.float64(hits)
            total[q] += drawn
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


@inlined
def _median(probs, rows, weight, value, spare, first, last, axis, size):  # type: ignore[no-untyped-def]
    # The values of ranks (size - 1) // 2 and size // 2, by weighted quickselect.
    rank, low, high = (size - 1) // 2, first, last
    centre = 0.0
    for a in range(first, last):
        spare[a] = rows[a]
        value[a] = probs[rows[a], axis]
    before = 0
    upper = np.inf
    while True:
        x, y, pivot = value[low], value[high - 1], value[(low + high) // 2]
        pivot = max(min(x, y), min(max(x, y), pivot))
        left, i, right = low, low, high
        lighter, equal = 0, 0
        while i < right:
            v, row = value[i], spare[i]
            if v < pivot:
                lighter += weight[row]
                value[i], spare[i] = value[left], spare[left]
                value[left], spare[left] = v, row
                left += 1
                i += 1
            elif v > pivot:
                right -= 1
                value[i], spare[i] = value[right], spare[right]
                value[right], spare[right] = v, row
            else:
                equal += weight[row]
                i += 1
        if rank < before + lighter:
            upper = pivot
            high = left
        elif rank < before + lighter + equal:
            centre = pivot
            if size % 2 == 0 and rank + 1 == before + lighter + equal:
                for a in range(right, high):
                    upper = min(upper, value[a])
                centre = (pivot + upper) / 2.0
            break
        else:
            before += lighter + equal
            low = right
    return centre


@kernel
def tree_error(  # type: ignore[no-untyped-def]
    probs, counts, by_mean, smallest_node, smallest_part, code, largest
):
    """Return the error in the tree of one sample, O(n K) for each of its levels."""
    # A node is a stretch of `rows`, its left part is moved to the front.
    # Rows that were not drawn are left out from the start: some 37 of 100.
    n, n_classes = probs.shape
    n_axes = 1 if n_classes == 2 else n_classes
    rows, spare = np.empty(n, dtype=np.int64), np.empty(n, dtype=np.int64)
    weight, value = np.empty(n, dtype=np.int64), np.empty(n)
    occupied = 0
    for i in range(n):
        weight[i] = 0
        for k in range(n_classes):
            weight[i] += counts[i, k]
        if weight[i] > 0:
            rows[occupied] = i
            occupied += 1
    sums, squares, events = np.empty(n_classes), np.empty(n_classes), np.empty(n_classes)
    firsts, lasts = np.empty(occupied + 1, dtype=np.int64), np.empty(occupied + 1, dtype=np.int64)
    firsts[0], lasts[0] = 0, occupied
    waiting = 1
    error = 0.0
    while waiting > 0:
        waiting -= 1
        first, last = firsts[waiting], lasts[waiting]
        sums[:] = 0.0
        squares[:] = 0.0
        size = 0
        for a in range(first, last):
            w = weight[rows[a]]
            size += w
            for k in range(n_classes):
                v = probs[rows[a], k]
                sums[k] += w * v
                squares[k] += w * v * v
        middle, n_below = first, 0
        if size >= smallest_node:
            axis, widest = 0, -1.0
            for k in range(n_axes):
                variance = squares[k] / size - (sums[k] / size) ** 2
                if variance > widest:
                    axis, widest = k, variance
            centre = sums[axis] / size
            if not by_mean:
                centre = _median(probs, rows, weight, value, spare, first, last, axis, size)
            right = 0
            for a in range(first, last):
                row = rows[a]
                if probs[row, axis] < centre:
                    rows[middle] = row
                    middle += 1
                    n_below += weight[row]
                else:
                    spare[right] = row
                    right += 1
            for a in range(right):
                rows[middle + a] = spare[a]
        if min(n_below, size - n_below) >= smallest_part:
            firsts[waiting], lasts[waiting] = middle, last
            firsts[waiting + 1], lasts[waiting + 1] = first, middle
            waiting += 2
            continue
        events[:] = 0.0
        for a in range(first, last):
            for k in range(n_classes):
                events[k] += counts[rows[a], k]
        gap = 0.0
        for k in range(n_classes):
            gap = _added(gap, events[k] - sums[k], code)
        gap = _measured(gap, size, code)
        error = max(error, gap / size) if largest else error + gap / n
    return error
