"""Statistical hypothesis tests for the calibration of probabilistic classifiers."""

from caltest import distances, examples
from caltest._version import __version__
from caltest.battery import audit
from caltest.binning import EdgeBins, QuantileBins, UniformBins, VarianceTree
from caltest.errors import (
    DegenerateDataWarning,
    InvalidPredictionsError,
    SparseBinsWarning,
    StatisticError,
)
from caltest.inference import calibration_test
from caltest.io import read_predictions
from caltest.lenses import Canonical, OneVsRest, Partition, TopK
from caltest.predictions import Predictions
from caltest.resampling import ConsistencyResampling, RedrawLabels, replicate
from caltest.results import AuditReport, CalibrationTestResult, JointTestResult
from caltest.statistics import ECE, MCE, DebiasedL1, DebiasedL2

__all__ = [
    "ECE",
    "MCE",
    "AuditReport",
    "CalibrationTestResult",
    "Canonical",
    "ConsistencyResampling",
    "DebiasedL1",
    "DebiasedL2",
    "DegenerateDataWarning",
    "EdgeBins",
    "InvalidPredictionsError",
    "JointTestResult",
    "OneVsRest",
    "Partition",
    "Predictions",
    "QuantileBins",
    "RedrawLabels",
    "SparseBinsWarning",
    "StatisticError",
    "TopK",
    "UniformBins",
    "VarianceTree",
    "__version__",
    "audit",
    "calibration_test",
    "distances",
    "examples",
    "read_predictions",
    "replicate",
]
