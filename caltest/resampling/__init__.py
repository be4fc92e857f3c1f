"""Resampling: what chance would do, and the engine that asks it again and again."""

from caltest.resampling.engine import (
    EXCEEDING,
    Workers,
    on_data,
    on_labels,
    replicate,
    replicates_of,
    simulate,
    simulate_by,
)
from caltest.resampling.schemes import (
    Bootstrap,
    ConsistencyResampling,
    LabelSampler,
    RedrawLabels,
    Resampler,
    Shortcut,
)

__all__ = [
    "EXCEEDING",
    "Bootstrap",
    "ConsistencyResampling",
    "LabelSampler",
    "RedrawLabels",
    "Resampler",
    "Shortcut",
    "Workers",
    "on_data",
    "on_labels",
    "replicate",
    "replicates_of",
    "simulate",
    "simulate_by",
]
