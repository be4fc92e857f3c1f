"""Simulation: labels redrawn, rows redrawn, and the engine (see docs/concepts/simulation)."""

from caltest._base.progress import Ended
from caltest.simulate.clusters import OneRowPerCluster, PopulationWeights, SharedRedraws, WildSigns
from caltest.simulate.engine import (
    BLOCK,
    CHUNK,
    EXCEEDING,
    Batches,
    Reaching,
    Shortcut,
    Workers,
    check_run,
    simulate,
    simulate_by,
)
from caltest.simulate.followup import FollowupDrawer, RedrawFollowup
from caltest.simulate.labels import LabelSampler
from caltest.simulate.schemes import (
    Bootstrap,
    ConsistencyResampling,
    LabelScheme,
    RedrawLabels,
    RowScheme,
    Scheme,
)

__all__ = [
    "BLOCK",
    "CHUNK",
    "EXCEEDING",
    "Batches",
    "Bootstrap",
    "ConsistencyResampling",
    "Ended",
    "FollowupDrawer",
    "LabelSampler",
    "LabelScheme",
    "OneRowPerCluster",
    "PopulationWeights",
    "Reaching",
    "RedrawFollowup",
    "RedrawLabels",
    "RowScheme",
    "Scheme",
    "SharedRedraws",
    "Shortcut",
    "WildSigns",
    "Workers",
    "check_run",
    "simulate",
    "simulate_by",
]
