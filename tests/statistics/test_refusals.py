"""What makes no sense is refused in a sentence, and statistics print as they are written."""

from __future__ import annotations

import numpy as np
import pytest
from conftest import STATISTICS, problem

import caltest as ct
from caltest import presets
from caltest.statistics.isotonic import isotonic_fit
from caltest.statistics.smooth import smooth_curve

THIRDS, BOTH = np.full((30, 3), 1 / 3), np.arange(30) % 2
SURE = np.array([0.0, 1.0]), np.array([0, 1])
HALVES = [([0.0, 1.0], [0, 1]), ([0.5, 0.5], [0, 1]), ([0.0, 0.5], [0, 1]), (THIRDS, BOTH)]
#: A call, and words of its refusal.
REFUSED = [
    (lambda: ct.ICI(span=0.0), "span must lie"),
    (lambda: ct.ICI(delta=-1.0), r"delta must lie in \[0, 1\]"),
    (lambda: ct.ICI(curve="spline"), "curve must be 'lowess' or 'loess'"),
    (lambda: ct.ICI(curve="loess", delta=0.1), "belongs to curve='lowess'"),
    (lambda: ct.ECI()([0.3, 0.3, 0.3], [0, 1, 1]), "all predictions are equal"),
    (lambda: ct.OERatio()(*SURE), "every prediction is 0 or 1"),
    (lambda: ct.CalibrationInTheLarge()(*SURE), "every prediction is 0 or 1"),
    (lambda: ct.HosmerLemeshow()(*SURE), "every prediction is 0 or 1"),
    (lambda: ct.CoxScore()(*SURE), "every prediction is 0 or 1"),
    (lambda: ct.CoxLR()(*SURE), "every prediction is 0 or 1"),
    *(
        (lambda d=d: ct.Spiegelhalter()(*d), "not defined: every prediction is 0, ½")
        for d in HALVES
    ),
    (lambda: ct.Kuiper(scaled=True)(*SURE), "every prediction is 0 or 1"),
    (lambda: ct.VariationalError("tvd"), "loss must be one of 'tv'"),
    (lambda: ct.RefinementError("l1"), "loss must be one of 'brier'"),
    (lambda: ct.VariationalError(folds=1), "folds must be a whole number ≥ 2"),
    (lambda: ct.VariationalError(recalibration="platt"), r"such as PlattScaling\(\)"),
    (lambda: ct.VariationalError()([0.1, 0.2], [0, 1]), "10 in all; there are 2"),
    (lambda: ct.ScaledBrierScore()([0.3], [1]), "give two rows"),
    (lambda: ct.HosmerLemeshow("ten"), "number of bins"),
    (lambda: ct.HosmerLemeshow(10), r"name the binning: QuantileBins\(10\) for equal mass"),
    (lambda: ct.HosmerLemeshow(variance="big"), "'binomial' or 'exact'"),
    (lambda: ct.HosmerLemeshow(df=0), "df must be a whole number"),
    (lambda: ct.LaplaceKernel(0.0), "number > 0"),
    (lambda: ct.TVKernel("mean"), "'median-with-diagonal', not 'mean'"),
    (lambda: ct.LaplaceKernel()(np.eye(2), np.eye(2)), "has no bandwidth yet"),
    (lambda: ct.SKCE(ct.LaplaceKernel), "kernel must be"),
    (lambda: ct.SKCE(estimator="quadratic"), "'block', 'linear', not 'quadratic'"),
    (lambda: ct.SKCE(block_size=4), "for estimator='block'"),
    (lambda: ct.SKCE(estimator="block", block_size=1), "a whole number ≥ 2"),
    (lambda: ct.SKCE(estimator="linear", features=4), "features are for"),
    (lambda: ct.SKCE(lambda rows, others: rows @ others.T, features=8), "features are for"),
    (lambda: ct.SKCE(features=5), "even number"),
    (lambda: ct.MMCE(bandwidth=-1.0), "number > 0"),
    (lambda: ct.MMCE(balanced="w"), "True or False"),
    (lambda: ct.SCE(0), "a whole number ≥ 1"),
    (lambda: ct.ACE(2.5), "bins must be a whole number"),
    (lambda: ct.TACE(15, threshold=1.0), r"threshold must lie in \[0, 1\)"),
    (lambda: ct.ClasswiseECE(aggregate="sum"), "'mean' or 'max'"),
    (lambda: ct.ClasswiseECE("many"), "number of bins"),
    (lambda: ct.ClasswiseECE(lambda rows: rows[:, 0])(*problem(1, 5, 3)), "one integer per row"),
    (lambda: ct.RMSCE(None), "number of bins"),
    (lambda: ct.RMSCE(15), r"QuantileBins\(15\) for equal mass"),
    (lambda: ct.DebiasedL2(10, estimator="sun"), "estimator must be"),
    (lambda: ct.DebiasedL2("ten"), "bins must be a number"),
    (lambda: ct.EdgeBins([0.2, 0.2]), "increasing"),
    (lambda: ct.EdgeBins([0.2])(THIRDS), "one coordinate"),
    (lambda: ct.Sweep(norm=2), "'l1' or 'l2'"),
    (lambda: ct.ScoreGap("crps"), "'brier', 'log', 'spherical', not 'crps'"),
    (lambda: ct.CORP("spherical"), "'brier' or 'log', not 'spherical'"),
    *((lambda s=s: ct.MultiScale(s), "powers of two") for s in ([3], [0], [2.0], [-2])),
    *((lambda s=s: ct.MultiScale(s), "increasing and at least one") for s in ([], [4, 2], [2, 2])),
    (lambda: presets.nixon2019(variant="code"), "one of paper, nixon"),
    (lambda: presets.monai("maximum"), "metric must be one of expected, not"),
    (lambda: presets.calzone("ece"), "metric must be one of ece-h"),
    (lambda: presets.relplot(task="top"), "task must be one of multiclass, binary"),
    (lambda: ct.TopK(0), "k must be a whole number ≥ 1"),
    (lambda: ct.TopK(1.5), "whole number"),
    (lambda: ct.OneVsRest(True), "whole number or a name"),
    (lambda: ct.Partition([0, 1]), "lists of classes"),
    (lambda: ct.Partition([[0, 1]]), "two groups"),
    (lambda: ct.Partition([[0, 1], []]), "none of them empty"),
    (lambda: ct.Partition([[0, 1], [1, 2]]), "class 1 more than once"),
    (lambda: smooth_curve(THIRDS, BOTH), "for two classes"),
    (lambda: isotonic_fit(THIRDS, BOTH), "isotonic_fit is for two classes"),
    (lambda: ct.corp_decomposition(THIRDS, BOTH, lens=ct.Canonical()), "for two classes"),
    (
        lambda: ct.cox_recalibration(THIRDS, BOTH, lens=ct.Canonical()),
        "cox_recalibration is for two classes, but there are",
    ),
    (lambda: ct.cox_recalibration([0.3, 0.4], [0, 1], level=95), r"level must lie in \(0, 1\)"),
    (lambda: ct.cox_recalibration([0.3, 0.4], [0, 1], method="exact"), "'wald' or 'profile'"),
]


@pytest.mark.filterwarnings("ignore::caltest.DoubtfulInputWarning")
@pytest.mark.parametrize(("call", "words"), REFUSED)
def test_refused(call, words):
    with pytest.raises(ct.StatisticError, match=words):
        call()


OF_AN_EVENT = [s for s in STATISTICS if s.two_classes and s.statistic != ct.VariationalError()]


@pytest.mark.parametrize("row", OF_AN_EVENT, ids=str)
def test_more_classes_are_refused(row):
    with pytest.raises(ct.StatisticError, match=r"for two classes, but there are 3|two-class lens"):
        row.statistic(THIRDS, BOTH)


@pytest.mark.parametrize(
    "text",
    [
        *("Kuiper()", "KolmogorovSmirnov(scaled=True)", "BrierScore()", "LogScore()"),
        *("SphericalScore()", "ScoreGap('brier')", "CORP('log')", "Sweep()", "Sweep(norm='l2')"),
        *("MultiScale()", "MultiScale(scales=[2, 8])", "EdgeBins([0.5], closed='left')"),
    ],
)
def test_printed_as_written(text):
    assert repr(eval(text, {name: getattr(ct, name) for name in ct.__all__})) == text
