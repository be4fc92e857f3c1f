"""Detection of cross-validation models that memorise groups of rows."""

from __future__ import annotations

import numpy as np

from caltest._base import FloatArray, IntArray

#: Distances of log-odds within which two predictions are close.
WIDTHS = (1e-9, 0.001, 0.003, 0.01, 0.03, 0.1)


#: z of close pairs within folds, and partners that a row has beyond chance, above which models
#: memorise groups: true models, rounded ones, logistic regressions, nearest neighbours, forests and
#: boosting on continuous features stay below in nearly all data sets.
LEAST_Z, LEAST_PARTNERS = 4.0, 0.6


#: Folds up to which the least partners hold; more folds have fewer rows of a group each, and the
#: limit falls with their number. 1000 rows of 50 sites in 50 folds have 0.4 partners a row, and the
#: aligned tests of 600 such data sets were rejected up to 0.08 more often than fresh rows.
MANY_FOLDS = 20


#: Probabilities are cut off here before their logit is taken.
MEMORISED_CLIP = 1e-15


def memorises(raw: FloatArray, aligned: FloatArray, fold: IntArray) -> bool:
    """Return whether close predictions lie in one fold far more often than folds dealt at random.

    Learners that memorise groups of rows (target encoding, rates of sites, one-hot columns) give
    all rows of a group nearly one prediction, and each model another one. ``raw`` and ``aligned``
    (n,) are predictions before and after alignment, ``fold`` (n,) the folds. O(n log n).
    """
    excess = close_pairs(raw, aligned, fold)
    least = LEAST_PARTNERS * min(1.0, MANY_FOLDS / np.unique(fold).size)
    return bool(((excess[:, 0] > LEAST_Z) & (excess[:, 1] > least)).any())


def close_pairs(raw: FloatArray, aligned: FloatArray, fold: IntArray) -> FloatArray:
    """Return (z, partners) of close pairs within folds for each of ``WIDTHS``, shape (6, 2).

    N pairs of rows are close, M of them lie in one fold, and folds dealt at random hold a share
    q = Σ n_k (n_k − 1) / (n (n − 1)) of all pairs: z = (M − N q) / √(N q (1 − q)), and
    2 (M − N q) / n partners a row. The smaller one of raw and aligned predictions counts: levels of
    folds, such as base rates, show before alignment only, and rounded predictions after it only.
    """
    n, sizes = fold.size, np.bincount(fold).astype(np.float64)
    q = float((sizes * (sizes - 1.0)).sum()) / (n * (n - 1.0))
    found = np.empty((2, len(WIDTHS), 2))
    for of_width, p in zip(found, (raw, aligned), strict=True):
        z = np.sort(log_odds(p))
        inside = [np.sort(log_odds(p[fold == k])) for k in np.flatnonzero(sizes)]
        for row, width in zip(of_width, WIDTHS, strict=True):
            pairs, together = _pairs(z, width), sum(_pairs(each, width) for each in inside)
            excess = together - pairs * q
            row[:] = excess / np.sqrt(max(pairs * q * (1.0 - q), 1.0)), 2.0 * excess / n
    return found.min(axis=0)


def log_odds(p: FloatArray) -> FloatArray:
    """Return logits of probabilities, cut off at 1e-15, same shape."""
    cut = np.clip(p, MEMORISED_CLIP, 1.0 - MEMORISED_CLIP)
    return np.log(cut) - np.log1p(-cut)


def _pairs(ordered: FloatArray, width: float) -> float:
    """Return the number of pairs of ordered numbers that differ by at most ``width``."""
    beyond = np.searchsorted(ordered, ordered + width, side="right")
    return float((beyond - np.arange(ordered.size) - 1.0).sum())
