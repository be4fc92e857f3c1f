"""Simulation: labels redrawn, rows redrawn, and the engine (see docs/concepts/simulation)."""

from caltest._base.progress import Ended as Ended
from caltest.simulate.clusters import OneRowPerCluster as OneRowPerCluster
from caltest.simulate.clusters import PopulationWeights as PopulationWeights
from caltest.simulate.clusters import SharedRedraws as SharedRedraws
from caltest.simulate.clusters import WildSigns as WildSigns
from caltest.simulate.engine import AT_ONCE as AT_ONCE
from caltest.simulate.engine import BLOCK as BLOCK
from caltest.simulate.engine import CHUNK as CHUNK
from caltest.simulate.engine import EXCEEDING as EXCEEDING
from caltest.simulate.engine import Batches as Batches
from caltest.simulate.engine import Reaching as Reaching
from caltest.simulate.engine import Run as Run
from caltest.simulate.engine import Shortcut as Shortcut
from caltest.simulate.engine import Workers as Workers
from caltest.simulate.engine import check_run as check_run
from caltest.simulate.engine import simulate as simulate
from caltest.simulate.engine import simulate_by as simulate_by
from caltest.simulate.followup import FollowupDrawer as FollowupDrawer
from caltest.simulate.followup import RedrawFollowup as RedrawFollowup
from caltest.simulate.labels import LabelSampler as LabelSampler
from caltest.simulate.schemes import Bootstrap as Bootstrap
from caltest.simulate.schemes import ConsistencyResampling as ConsistencyResampling
from caltest.simulate.schemes import LabelScheme as LabelScheme
from caltest.simulate.schemes import RedrawLabels as RedrawLabels
from caltest.simulate.schemes import RowScheme as RowScheme
from caltest.simulate.schemes import Scheme as Scheme
