"""Recalibration maps: fitted on held-out labels, applied to probabilities.

A method such as :class:`TemperatureScaling` is a value; its ``fit`` returns a map that is called on
new predictions, a :class:`Recalibrated`. Fit on one part of the data and test on another: a test on
the rows of the fit says nothing, and is refused when it is noticed.
"""

from .fitting import Recalibrated as Recalibrated
from .fitting import Recalibration as Recalibration
from .fitting import refuse_fitted_rows as refuse_fitted_rows
from .methods import BetaCalibration as BetaCalibration
from .methods import HistogramBinning as HistogramBinning
from .methods import IsotonicRegression as IsotonicRegression
from .methods import MatrixScaling as MatrixScaling
from .methods import PlattScaling as PlattScaling
from .methods import TemperatureScaling as TemperatureScaling
from .methods import VectorScaling as VectorScaling
