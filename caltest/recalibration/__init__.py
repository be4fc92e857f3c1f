"""Recalibration: maps that are fitted on held-out labels and repair the probabilities of a model.

A method such as :class:`TemperatureScaling` is a value; its ``fit`` returns a map that is called on
new predictions, a :class:`Recalibrated`. Fit on one part of the data and test on another: a test on
the rows of the fit says nothing, and is refused when it is noticed.
"""

from caltest.recalibration.curves import (
    BetaCalibration,
    HistogramBinning,
    IsotonicRegression,
    PlattScaling,
)
from caltest.recalibration.fitting import Recalibrated, Recalibration, refuse_fitted_rows
from caltest.recalibration.scaling import MatrixScaling, TemperatureScaling, VectorScaling

__all__ = [
    "BetaCalibration",
    "HistogramBinning",
    "IsotonicRegression",
    "MatrixScaling",
    "PlattScaling",
    "Recalibrated",
    "Recalibration",
    "TemperatureScaling",
    "VectorScaling",
    "refuse_fitted_rows",
]
