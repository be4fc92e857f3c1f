"""The verbs."""

from .calibration import calibration_test as calibration_test
from .comparison import compare as compare
from .comparison import compare_models as compare_models
from .cox import cox_recalibration as cox_recalibration
from .decompositions import brier_decomposition as brier_decomposition
from .decompositions import corp_decomposition as corp_decomposition
from .equivalence import equivalence_test as equivalence_test
from .grades import grade_tests as grade_tests
from .intervals import confidence_interval as confidence_interval
from .joint import joint_test as joint_test
from .pvalues import replicate as replicate
from .sites import meta_analysis as meta_analysis
