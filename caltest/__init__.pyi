"""Statistical hypothesis tests for the calibration of probabilistic classifiers."""

from . import planning as planning
from . import plots as plots
from . import presets as presets
from . import recalibration as recalibration
from ._version import __version__ as __version__
from .data import Predictions as Predictions
from .data import distances as distances
from .data import examples as examples
from .data.binning import EdgeBins as EdgeBins
from .data.binning import QuantileBins as QuantileBins
from .data.binning import UniformBins as UniformBins
from .data.binning import VarianceTree as VarianceTree
from .data.followup import Followup as Followup
from .data.lenses import Canonical as Canonical
from .data.lenses import Cumulative as Cumulative
from .data.lenses import Lens as Lens
from .data.lenses import OneVsRest as OneVsRest
from .data.lenses import Partition as Partition
from .data.lenses import TopK as TopK
from .data.utilities import Costs as Costs
from .data.utilities import ReciprocalRank as ReciprocalRank
from .data.utilities import TopKAccuracy as TopKAccuracy
from .data.utilities import Utility as Utility
from .errors import DegenerateDataWarning as DegenerateDataWarning
from .errors import DoubtfulInputError as DoubtfulInputError
from .errors import DoubtfulInputWarning as DoubtfulInputWarning
from .errors import FewClustersWarning as FewClustersWarning
from .errors import InvalidPredictionsError as InvalidPredictionsError
from .errors import LimitLawWarning as LimitLawWarning
from .errors import Reading as Reading
from .errors import ShortFollowupWarning as ShortFollowupWarning
from .errors import SparseBinsWarning as SparseBinsWarning
from .errors import StatisticError as StatisticError
from .errors import UnmeasuredWarning as UnmeasuredWarning
from .inference import *
from .monitoring import *
from .nulls import *
from .planning import plan as plan
from .read.files import read_predictions as read_predictions
from .reports import audit as audit
from .reports import gate as gate
from .reports.document import Report as Report
from .reports.report import report as report
from .results import *
from .statistics import *
from .tallies import *
