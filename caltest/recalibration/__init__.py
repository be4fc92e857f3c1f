"""Recalibration: maps that are fitted on held-out labels and repair the probabilities of a model.

A method such as :class:`TemperatureScaling` is a value; its ``fit`` returns a map that is called on
new predictions, a :class:`Recalibrated`. Fit on one part of the data and test on another: a test on
the rows of the fit says nothing, and is refused when it is noticed.
"""

from caltest.recalibration.curves import BetaCalibration as BetaCalibration
from caltest.recalibration.curves import HistogramBinning as HistogramBinning
from caltest.recalibration.curves import IsotonicRegression as IsotonicRegression
from caltest.recalibration.curves import PlattScaling as PlattScaling
from caltest.recalibration.fitting import Recalibrated as Recalibrated
from caltest.recalibration.fitting import Recalibration as Recalibration
from caltest.recalibration.fitting import refuse_fitted_rows as refuse_fitted_rows
from caltest.recalibration.scaling import MatrixScaling as MatrixScaling
from caltest.recalibration.scaling import TemperatureScaling as TemperatureScaling
from caltest.recalibration.scaling import VectorScaling as VectorScaling
