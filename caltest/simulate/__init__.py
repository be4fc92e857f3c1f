"""Simulation, by question: labels redrawn, rows redrawn, and the engine that asks again and again.

``streams`` keys random words by seed and number; ``labels`` draws labels, and fuses drawing with
counting for binned errors, ``line`` with sums over pairs, ``clusters`` dependent ones;
``row_counts`` counts rows drawn with replacement, ``rows`` makes errors of the counts; ``schemes``
are the ways to draw that people name; ``engine`` runs them.
"""

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
from caltest.simulate.sampler import LabelSampler
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
    "LabelSampler",
    "LabelScheme",
    "OneRowPerCluster",
    "PopulationWeights",
    "Reaching",
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
