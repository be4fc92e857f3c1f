"""What monitors share: values that are moved on, a thinned history, and JSON without a row."""

from __future__ import annotations

import ast
from abc import abstractmethod
from dataclasses import dataclass
from math import exp
from typing import Any, ClassVar, Self

import numpy as np

from caltest._base import checks
from caltest._base.arrays import FloatArray, IntArray
from caltest._base.facts import as_times
from caltest._base.written import name_of
from caltest.bets.kernels import REFUTED
from caltest.errors import InvalidPredictionsError, StatisticError
from caltest.lenses import Canonical, LensLike, OneVsRest, Partition, TopK
from caltest.predictions import Predictions
from caltest.results import Result
from caltest.tally import Tally

#: Points that a history keeps at most; every second goes when there are more.
MOST_POINTS = 512
LENSES = {lens.__name__: lens for lens in (TopK, Partition, OneVsRest, Canonical)}


@dataclass(frozen=True, kw_only=True)
class Watch(Result):
    """A monitor as a value: an update returns a new one, and the old one stays as it was."""

    n: int = 0
    n_classes: int = 0
    classes: tuple[str, ...] | None = None
    lens: LensLike | None = None
    alpha: float = 0.05
    alarm: int | None = None
    every: int = 1
    past: bytes = b""
    horizon: int = 1
    steps: int = 0
    time: float | None = None
    state: bytes = b""
    plotter: ClassVar[str] = "curves.evidence"

    def __post_init__(self) -> None:
        super().__post_init__()
        checks.fraction("alpha", self.alpha)
        checks.whole("horizon", self.horizon)

    @property
    @abstractmethod
    def width(self) -> int:
        """Numbers of a point of the history, the number of rows first."""

    def _moved(self, **changes: Any) -> Self:
        """Return a changed copy, much faster than ``dataclasses.replace``; nothing is checked."""
        new: Self = object.__new__(type(self))
        new.__dict__.update(self.__dict__, **changes)
        return new

    def _same_classes(self, data: Predictions | Tally) -> dict[str, Any]:
        """Return number and names of the classes; refuse other ones than those before."""
        if self.n and data.n_classes != self.n_classes:
            raise InvalidPredictionsError(
                f"these rows have {data.n_classes} classes, those before {self.n_classes}"
            )
        if self.classes and data.classes and data.classes != self.classes:
            raise InvalidPredictionsError(
                f"these rows name their classes {', '.join(data.classes)}, those before "
                f"{', '.join(self.classes)}: bring the columns into that order (--probs, --classes)"
            )
        return {"n_classes": data.n_classes, "classes": self.classes or data.classes}

    def _rules(self, name: str, *rules: str) -> list[str]:
        """Return what a recipe says of a monitor: its name, its lens, its rules, its horizon."""
        lens = [] if self.lens is None else [repr(self.lens)]
        ahead = [f"horizon {self.horizon}"] if self.horizon > 1 else []
        return [name, *lens, *rules, *ahead]

    def _traced(self, path: FloatArray) -> dict[str, Any]:
        """Return what rows add to the history: how many there are, and numbers after them."""
        n, every = int(path[-1, 0]), self.every
        if n // every == self.n // every:
            return {"n": n}
        points = np.vstack([self._points(), _thinned(path, every, self.n // every)])
        while len(points) > MOST_POINTS:
            every *= 2
            points = _thinned(points, every)
        return {"n": n, "every": every, "past": points.tobytes()}

    def _points(self) -> FloatArray:
        return np.frombuffer(self.past).reshape(-1, self.width)

    def as_dict(self) -> dict[str, Any]:
        """Return plain numbers, strings, lists and dictionaries; no row is among them."""
        return super().as_dict() | {"lens": None if self.lens is None else name_of(self.lens)}

    @classmethod
    def from_dict(cls, content: dict[str, Any], lens: LensLike | None = None) -> Self:
        """Rebuild from :meth:`as_dict`; a lens that is a function of your own has to be given.

        Raises
        ------
        StatisticError
            When the lens is not one of caltest, and none is given.
        """
        name, _, values = (content["lens"] or "").partition("(")
        if lens is None and name in LENSES:
            lens = LENSES[name](*ast.literal_eval(f"[{values[:-1]}]"))
        elif name and name != name_of(lens).partition("(")[0]:
            raise StatisticError(f"this monitor has the lens {content['lens']}: pass it as lens=")
        return super().from_dict(content | {"lens": lens})

    @classmethod
    def from_json(cls, text: str, lens: LensLike | None = None) -> Self:
        """Rebuild from :meth:`to_json`; see :meth:`from_dict`."""
        import json

        return cls.from_dict(json.loads(text), lens)


def steps_of(n: int, time: Any, start: int, last: float | None) -> tuple[IntArray, float | None]:
    """Return at which step each row is, after ``start`` steps, and the time of the last."""
    if time is None:
        if last is not None:
            raise InvalidPredictionsError("earlier rows had times: pass time= with all rows")
        return start + np.arange(n), None
    times = as_times(time, n)
    if start and last is None:
        raise InvalidPredictionsError("earlier rows had no times: pass time= with all or none")
    before = np.append(np.nan if last is None else last, times[:-1])
    if (times < before).any():
        row = int(np.argmax(times < before))
        raise InvalidPredictionsError(
            f"time: row {row} is {times[row]:.10g}, before {before[row]:.10g}; a monitor goes "
            "forward: sort the rows by time, and do not add to times that are over"
        )
    return start - 1 + np.cumsum(times != before), float(times[-1])


def _thinned(points: FloatArray, every: int, before: float = 0.0) -> FloatArray:
    """Return the first point of every so many rows."""
    part = points[:, 0] // every
    return points[part > np.append(before, part[:-1])]


def odds(log_evidence: float) -> float:
    """Return evidence from its logarithm; infinite once an outcome of probability 0 occurred."""
    return exp(log_evidence) if log_evidence < 700.0 else np.inf


def shown(log_evidence: float) -> str:
    """Return an e-value as it is printed."""
    if log_evidence >= REFUTED:
        return "infinite"
    if log_evidence < -600.0:
        return "none yet"
    power = log_evidence / np.log(10.0)
    return f"{np.exp(log_evidence):.4g}" if abs(power) < 5 else f"10^{power:.1f}"
