"""Compiled loops over rows: labels redrawn or given, and counted in cells.

Sums are the work of these loops and formulas that of statistics: what a loop returns is residual
sums, of which a statistic makes its value.
"""

from __future__ import annotations

import numpy as np

from caltest._base.compiled import counter_kernel, dense_kernel, kernel
from caltest.simulate.streams import GAMMA, mixed


@counter_kernel
def redraw_two(  # type: ignore[no-untyped-def]
    thresholds, order, starts, expected, weights, tables, whole, key, twist, sums_out, added_out
):
    # Two classes, O(n) per lane: residual sums (L, 1, B), and sums of tables (T, L, B), or
    # (T, 1, B) where only the whole is wanted. Rows are outside, lanes inside: a row is read once
    # for all lanes, and lanes are vectors.
    lanes, weighted, n_tables = key.size, weights.size > 0, tables.shape[0]
    event = np.empty(lanes, dtype=np.int32)
    count = np.empty(lanes, dtype=np.int32)
    mass = np.empty(lanes)
    added_out[:] = 0.0
    for b in range(starts.size - 1):
        count[:] = 0
        mass[:] = 0.0
        place = 0 if whole else b
        for i in range(starts[b], starts[b + 1]):
            step, threshold = GAMMA * np.uint64(order[i]), thresholds[i]
            if not weighted and n_tables == 0:
                for q in range(lanes):
                    count[q] += mixed(key[q] + step, twist[q]) < threshold
                continue
            for q in range(lanes):
                event[q] = mixed(key[q] + step, twist[q]) < threshold
            if weighted:
                w = weights[i]
                for q in range(lanes):
                    mass[q] += w * event[q]
            else:
                for q in range(lanes):
                    count[q] += event[q]
            for t in range(n_tables):
                hit, miss = tables[t, i, 0], tables[t, i, 1]
                for q in range(lanes):
                    added_out[t, place, q] += hit if event[q] > 0 else miss
        for q in range(lanes):
            sums_out[b, 0, q] = (mass[q] if weighted else count[q]) - expected[b, 0]


@counter_kernel
def redraw_few(  # type: ignore[no-untyped-def]
    thresholds, order, starts, expected, norm, key, twist, draw, below, gap,
    sums_out,
):  # fmt: skip
    # Up to 40 classes, O(n K) per lane in vector instructions: residual sums (L, K, B), or with a
    # norm (0 l1, 1 squared l2, 2 largest) that of each cell alone, (L, 1, B). below[k], of K + 1
    # rows of zeros, counts the draws below threshold k − 1: the labels under k.
    n_classes, lanes = expected.shape[1], key.size
    for b in range(starts.size - 1):
        # Element by element: assigning to slices would compile for a second.
        for q in range(lanes):
            gap[q] = 0.0
            below[n_classes, q] = starts[b + 1] - starts[b]
        for k in range(1, n_classes):
            for q in range(lanes):
                below[k, q] = 0
        for i in range(starts[b], starts[b + 1]):
            step = GAMMA * np.uint64(order[i])
            for q in range(lanes):
                draw[q] = mixed(key[q] + step, twist[q])
            for k in range(n_classes - 1):
                threshold = thresholds[i, k]
                for q in range(lanes):
                    below[k + 1, q] += draw[q] < threshold
        # A loop for each norm: a question within one would keep it from being vectors.
        if norm < 0:
            for k in range(n_classes):
                for q in range(lanes):
                    sums_out[b, k, q] = below[k + 1, q] - below[k, q] - expected[b, k]
        elif norm == 0:
            for k in range(n_classes):
                less = expected[b, k]
                for q in range(lanes):
                    gap[q] += abs(below[k + 1, q] - below[k, q] - less)
        elif norm == 1:
            for k in range(n_classes):
                less = expected[b, k]
                for q in range(lanes):
                    gap[q] += (below[k + 1, q] - below[k, q] - less) ** 2
        else:
            for k in range(n_classes):
                less = expected[b, k]
                for q in range(lanes):
                    gap[q] = max(gap[q], abs(below[k + 1, q] - below[k, q] - less))
        if norm >= 0:
            for q in range(lanes):
                sums_out[b, 0, q] = gap[q]


@kernel
def count_norms(  # type: ignore[no-untyped-def]
    labels, cell, expected, weights, table, norm, norms_out, added_out
):
    # Norms (B, L, 1) of the sums over classes (0 l1, 1 squared l2, 2 largest), and sums of a table
    # (B, L): O(n + L K) per set of labels, in a table of counts that stays in the near cache.
    weighted, tabled = weights.size > 0, table.shape[0] > 0
    counts = np.empty(expected.shape)
    for r in range(labels.shape[0]):
        row, added = labels[r], added_out[r]
        counts[:] = 0.0
        added[:] = 0.0
        if tabled:  # in one pass: rows are read once
            for i in range(row.size):
                b, y = cell[i], row[i]
                counts[b, y] += weights[i] if weighted else 1.0
                added[b] += table[i, y]
        else:
            for i in range(row.size):
                counts[cell[i], row[i]] += weights[i] if weighted else 1.0
        for b in range(expected.shape[0]):
            gap = 0.0
            for k in range(expected.shape[1]):
                d = counts[b, k] - expected[b, k]
                if norm == 1:
                    gap += d * d
                elif norm == 0:
                    gap += abs(d)
                else:
                    gap = max(gap, abs(d))
            norms_out[r, b, 0] = gap


@kernel
def count_l1(  # type: ignore[no-untyped-def]
    labels, order, starts, expected, untouched, weights, norms_out
):
    # l1 norms (B, L, 1) where cells times classes are more than rows, O(n) per set of labels: a
    # cell's sum over all classes is corrected for those that occur in it.
    counts, weighted = np.zeros(expected.shape[1]), weights.size > 0
    for r in range(labels.shape[0]):
        row = labels[r]
        for b in range(starts.size - 1):
            first, last = starts[b], starts[b + 1]
            for i in range(first, last):
                counts[row[order[i]]] += weights[order[i]] if weighted else 1.0
            gap = untouched[b]
            for i in range(first, last):
                k = row[order[i]]
                if counts[k] > 0.0:
                    gap += abs(counts[k] - expected[b, k]) - expected[b, k]
                counts[k] = 0.0
            norms_out[r, b, 0] = gap


@dense_kernel
def look_up(labels, table, sums_out):  # type: ignore[no-untyped-def]
    # Σ_i table[i, y_i] of each set of labels.
    for r in range(labels.shape[0]):
        total = 0.0
        for i in range(labels.shape[1]):
            total += table[i, labels[r, i]]
        sums_out[r] = total
