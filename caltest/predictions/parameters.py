"""What verbs accept besides arrays, as types of their keywords."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypedDict


class RowFacts(TypedDict, total=False):
    """What every verb accepts besides arrays; see :meth:`Predictions.of` for the meanings."""

    classes: Sequence[Any] | None
    weights: Any
    clusters: Any
    by: Any
    ids: Any
    folds: Any
    from_logits: bool
    ordered: bool
    pos_label: Any
    predicted_label: str | None
    renormalise: bool
    drop_missing: bool


class Facts(RowFacts, total=False):
    """The same with what monitors and searches have as parameters of their own."""

    features: Any
    time: Any
    horizon: int | None
