"""What the curves share: their components, their names, and the test that goes with them."""

from __future__ import annotations

import warnings
from dataclasses import replace
from typing import Any

from caltest.errors import DegenerateDataWarning, StatisticError
from caltest.inference import calibration_test
from caltest.lenses import Canonical, Lens, OneVsRest, Partition, TopK
from caltest.predictions import Predictions
from caltest.results import CalibrationTestResult
from caltest.statistics import Statistic
from caltest.written import name_of


def components_of(induced: Predictions) -> list[Predictions]:
    """Return the two-class problems of an induced problem: its event, or each class in turn."""
    if induced.n_classes == 2:
        return [induced]
    return [OneVsRest(j)(induced) for j in range(induced.n_classes)]


def names_of(lens: Lens, data: Predictions, induced: Predictions) -> tuple[str, ...]:
    """Return what the components of an induced problem are called in pictures."""
    if isinstance(lens, TopK):
        if lens.k == 1:
            return ("top class",)
        ordinals = ["largest", "second", "third", *(f"{j}th" for j in range(4, lens.k + 1))]
        return (*ordinals[: lens.k], "all others")
    if isinstance(lens, OneVsRest):
        return (f"class {data.class_name(data.class_index(lens.c))}",)
    if isinstance(lens, Partition):
        groups = [
            ", ".join(data.class_name(data.class_index(c)) for c in group) for group in lens.groups
        ]
        return tuple(groups[: 1 if len(groups) == 2 else None])
    count = 1 if induced.n_classes == 2 else induced.n_classes
    return tuple(f"class {induced.class_name(j)}" for j in range(count))


def refuse_more_classes(what: str, lens: Lens, induced: Predictions) -> None:
    """Refuse a lens that leaves more than two classes."""
    if induced.n_classes != 2:
        raise StatisticError(
            f"{what} needs a two-class lens; {name_of(lens)} leaves {induced.n_classes} classes"
        )


def own_test(
    induced: Predictions, statistic: Statistic, lens: Lens, data: Predictions, **options: Any
) -> CalibrationTestResult:
    """Test what a picture shows; a statistic that can show one value only is no news there."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DegenerateDataWarning)
        test = calibration_test(induced, None, statistic, lens=Canonical(), **options)
    return replace(test, lens=name_of(lens), n_classes=data.n_classes, notes=data.notes)
