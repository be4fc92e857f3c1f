"""Null distributions: exact laws, and Monte Carlo draws where there is no law."""

from .clusters import OneRowPerCluster as OneRowPerCluster
from .clusters import PopulationWeights as PopulationWeights
from .clusters import SharedRedraws as SharedRedraws
from .clusters import WildSigns as WildSigns
from .draws import CHUNK as CHUNK
from .draws import EXCEEDING as EXCEEDING
from .draws import LABELS_AT_ONCE as LABELS_AT_ONCE
from .draws import REPLICATES_A_STREAM as REPLICATES_A_STREAM
from .draws import Batches as Batches
from .draws import Bootstrap as Bootstrap
from .draws import ConsistencyResampling as ConsistencyResampling
from .draws import LabelSampler as LabelSampler
from .draws import LabelScheme as LabelScheme
from .draws import Reaching as Reaching
from .draws import RedrawFollowup as RedrawFollowup
from .draws import RedrawLabels as RedrawLabels
from .draws import RowScheme as RowScheme
from .draws import Run as Run
from .draws import Scheme as Scheme
from .draws import Shortcut as Shortcut
from .draws import Workers as Workers
from .draws import check_run as check_run
from .draws import simulate as simulate
from .draws import simulate_by as simulate_by
from .lanes import FollowLanes as FollowLanes
from .lanes import Lanes as Lanes
from .lanes import SharedLanes as SharedLanes

__all__ = [
    "Bootstrap",
    "ConsistencyResampling",
    "LabelScheme",
    "OneRowPerCluster",
    "PopulationWeights",
    "RedrawFollowup",
    "RedrawLabels",
    "RowScheme",
    "Scheme",
    "SharedRedraws",
    "WildSigns",
]
