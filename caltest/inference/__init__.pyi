"""Tests, intervals, comparisons and diagrams: one question a file."""

from .benefit import decision_curve as decision_curve
from .benefit import promise as promise
from .calibration import calibration_test as calibration_test
from .comparison import compare as compare
from .comparison import compare_models as compare_models
from .counts import grade_tests as grade_tests
from .counts import individual_error as individual_error
from .cox import cox_recalibration as cox_recalibration
from .cox import meta_analysis as meta_analysis
from .diagrams import SimplexGrid as SimplexGrid
from .diagrams import bin_sensitivity as bin_sensitivity
from .diagrams import brier_decomposition as brier_decomposition
from .diagrams import corp_decomposition as corp_decomposition
from .diagrams import reliability_fit as reliability_fit
from .diagrams import reliability_simplex as reliability_simplex
from .interval import confidence_interval as confidence_interval
from .interval import equivalence_test as equivalence_test
from .joint import joint_test as joint_test
from .joint import worst_class as worst_class
from .null import replicate as replicate
from .reliability import reliability_curve as reliability_curve
from .reliability import reliability_difference as reliability_difference
from .segments import segment_search as segment_search
