"""Decompositions of a mean score: by isotonic regression, and over cells.

:func:`corp_decomposition` has no bins (isotonic regression), :func:`brier_decomposition` has
reliability, resolution and uncertainty over the cells of a partition.
"""

from __future__ import annotations

from typing import Unpack

import numpy as np

from caltest._base.arrays import one_of
from caltest._base.written import Fields, name_of
from caltest.data import Facts
from caltest.data.binning import Binning, UniformBins, as_binning
from caltest.data.lenses import LensLike
from caltest.inference._input import Analysis, evaluated
from caltest.results import BrierDecomposition, CORPDecomposition
from caltest.statistics import CORP, BrierScore, Cells, LogScore, RowProblem
from caltest.statistics.isotonic import Score, best_score


def corp_decomposition(
    probs: object,
    labels: object = None,
    *,
    lens: LensLike | None = None,
    score: Score = "brier",
    **facts: Unpack[Facts],
) -> CORPDecomposition:
    """Take a mean score apart into miscalibration, discrimination and uncertainty.

    Every part is a difference of scores under the isotonic fit: no bins, no tuning. O(n log n).

    Parameters
    ----------
    probs, labels, lens, **facts
        As in :func:`calibration_test`, for a lens with two classes. Clusters change no part. For a
        :class:`Tally` the fit ties the rows of a micro-cell; the mean score is exact.
    score : {"brier", "log"}, default "brier"
        (p − y)², or −log of the probability of the label: infinite for a label of probability 0, as
        are then ``mean_score`` and ``miscalibration``.

    References
    ----------
    Dimitriadis, Gneiting & Jordan, "Stable reliability diagrams for probabilistic classifiers",
    PNAS 118(8), 2021.

    Examples
    --------
    >>> parts = corp_decomposition([0.2, 0.6, 0.4, 0.9], [0, 0, 1, 1])
    >>> parts.mean_score, parts.miscalibration, parts.discrimination, parts.uncertainty
    (0.1925, 0.0675, 0.125, 0.25)
    """
    one_of("score", score, ("brier", "log"))
    analysis = Analysis.of("corp_decomposition", probs, labels, facts, lens=lens)
    induced = analysis.problem.tied_rows()
    fixed = CORP(score).prepare(RowProblem(induced))
    mean_score = fixed.mean_score(induced.labels)  # infinite where an impossible outcome occurred
    if analysis.from_sums:
        of_all = BrierScore() if score == "brier" else LogScore()
        mean_score = evaluated(of_all, analysis.problem)[1]
    fit = fixed.fit(induced.labels)
    # The best constant forecast is the rate of events: its score is the uncertainty
    w = np.ones(induced.n) if induced.weights is None else induced.weights
    events, total = np.array([[w[induced.labels == 0].sum()], [w.sum()]])
    recalibrated = best_score(fit.observed * fit.count, fit.count, score)
    uncertainty = best_score(events, total, score)
    return analysis.result(
        CORPDecomposition, mean_score=mean_score, miscalibration=mean_score - recalibrated,
        discrimination=uncertainty - recalibrated, uncertainty=uncertainty, score=score, fit=fit,
    )  # fmt: skip


def brier_decomposition(
    probs: object,
    labels: object = None,
    *,
    lens: LensLike | None = None,
    bins: Binning | int = UniformBins(15),
    **facts: Unpack[Facts],
) -> BrierDecomposition:
    """Take the Brier score apart over the cells of a partition. O(n K).

    Sampling noise biases both reliability and resolution upward, the more the smaller the cells
    are; :func:`corp_decomposition` needs no cells.

    Parameters
    ----------
    probs, labels, lens, **facts
        As in :func:`calibration_test`; ``Canonical()`` takes the score of all classes apart.
        Clusters change no part. For a :class:`Tally` bins are made of its micro-cells, and all
        parts equal the parts of the rows.
    bins : binning or int, default UniformBins(15)
        The partition, as for :class:`caltest.ECE`.

    References
    ----------
    Murphy, "A new vector partition of the probability score", Journal of Applied Meteorology 12,
    1973. Stephenson, Coelho & Jolliffe, "Two extra components in the Brier score decomposition",
    Weather and Forecasting 23, 2008.

    Examples
    --------
    >>> parts = brier_decomposition([0.25, 0.25, 0.75, 0.75], [0, 0, 1, 0])
    >>> parts.mean_score, parts.reliability, parts.resolution, parts.uncertainty
    (0.1875, 0.0625, 0.0625, 0.1875)
    """
    bins = as_binning(bins)
    analysis = Analysis.of("brier_decomposition", probs, labels, facts, lens=lens)
    problem = analysis.problem
    cells, (squares, products) = Cells.of(bins, problem), problem.products
    residuals = problem.sums(problem.observed, cells).cells
    assert residuals is not None
    size, p = cells.mass[:, None], cells.expected
    y = p + residuals[0]
    n, overall = size.sum(), y.sum(axis=0) / size.sum()
    parts = {
        "mean_score": squares - 2.0 * products + y.sum(),
        # Σ w (p̄ − ȳ)², with sums p and y in place of means
        "reliability": ((p - y) ** 2 / size).sum(),
        "resolution": (size * (y / size - overall) ** 2).sum(),
        "uncertainty": n * (overall * (1.0 - overall)).sum(),
        # Stephenson et al. (2008): what Murphy leaves out where predictions of a cell differ
        "within_variance": squares - (p**2 / size).sum(),
        "within_covariance": 2.0 * (products - (p * y / size).sum()),
    }
    numbers: Fields = {name: float(part / n) for name, part in parts.items()}
    return analysis.result(BrierDecomposition, bins=name_of(bins), **numbers)
