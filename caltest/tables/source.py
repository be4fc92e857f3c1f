"""What is asked of a table, and what every reader returns: columns by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from os import PathLike
from typing import Any, Literal

import numpy as np

from caltest._base.arrays import AnyArray
from caltest.errors import InvalidPredictionsError

Column = AnyArray
#: Cells of a column that tell what it may be.
FIRST = 1000
#: Cells that say that nothing is known, in lower case.
MISSING = ("", "na", "n/a", "#n/a", "nan", "null", "none", "<na>")


@dataclass(frozen=True)
class Request:
    """What to read in a table: the arguments of :func:`caltest.read_predictions` but the path."""

    probs: str | Sequence[str] | None = None
    label: str | PathLike[str] | Sequence[str] | None = None
    predicted_label: str | None = None
    weights: str | None = None
    clusters: str | None = None
    by: str | None = None
    ids: str | None = None
    folds: str | None = None
    classes: Sequence[object] | None = None
    pos_label: object = None
    from_logits: bool = False
    renormalise: bool = False
    percent: bool = False
    per_character: bool = False
    drop_missing: bool | float = False
    one_model: bool = False
    format: str | None = None
    time: str | None = None
    event: str | None = None
    horizon: float | str | None = None
    strata: str | None = None
    features: str | Sequence[str] | None = None
    ordered: bool = False
    multilabel: bool = False
    drop_labels: Sequence[str] = ()
    rounded: bool | Literal["auto"] = False
    sheet: str | None = None

    def __post_init__(self) -> None:
        followed, wrong = self.event is not None, ""
        remedies: list[tuple[str, ...]] = [("--time", "COLUMN", "--horizon", "T")]
        if followed and (self.time is None or self.horizon is None):
            wrong = "an event is one by a horizon of rows that were followed for a time: say time= "
            wrong += "and horizon= (--time, --horizon)"
        elif followed and self.label is not None:
            wrong = "event= (--event) is what was observed: leave out label= (--label)"
            remedies = [("!--label",)]
        elif not followed and self.time is not None and self.horizon is None:
            wrong = "time= (--time) needs the horizon= (--horizon) of forecasts so many steps "
            wrong += "ahead, 1 of the next one, or is for follow-up: name its event= (--event)"
            remedies = [("--horizon", "1"), ("--event", "COLUMN", "--horizon", "T")]
        elif not followed and self.strata is not None:
            wrong = "strata= (--strata) is for follow-up: name its event= (--event)"
            remedies = [("--event", "COLUMN", *remedies[0])]
        if wrong:
            raise InvalidPredictionsError(wrong, remedies)
        if isinstance(self.drop_labels, str):
            object.__setattr__(self, "drop_labels", (self.drop_labels,))
        if followed:
            object.__setattr__(self, "label", self.event)

    @property
    def ahead(self) -> Any:
        """By how many steps forecasts are ahead of labels; events have a horizon in time."""
        return None if self.event is not None else self.horizon

    @property
    def facts(self) -> dict[str, str]:
        """The columns that say something of the rows."""
        names = {"weights": self.weights, "clusters": self.clusters, "by": self.by, "ids": self.ids}
        names |= {"folds": self.folds, "time": self.time, "strata": self.strata}
        columns = (self.clusters or "").split(",")
        if len(columns) > 1:  # which are put together again when they are read
            names["clusters"] = None
            names |= {f"clusters {name.strip()}": name.strip() for name in columns}
        return {fact: name for fact, name in names.items() if name is not None}


@dataclass(frozen=True)
class Source:
    """A table whose columns can be asked for by name.

    ``read`` turns names into columns: text stays text, a column of lists becomes two-dimensional.
    ``bare`` is what to say of one array without names, whose labels must be in a file of their own;
    ``content`` what JSON holds, before it is made into columns; ``log`` whether the format says
    that the columns ``probs``, ``label`` and ``id`` are these; ``notes`` say how they were made;
    ``frame`` whether it is in memory; ``parts`` names the files it consists of, and their rows;
    ``part`` whether other rows are in batches of their own; ``arrays`` whether columns are arrays,
    which may be of any shape.
    """

    names: list[str]
    read: Callable[[Sequence[str]], list[Column]]
    bare: str = ""
    content: object = None
    log: bool = False
    notes: tuple[str, ...] = field(default=())
    frame: bool = False
    parts: tuple[tuple[str, int], ...] = ()
    part: bool = False
    arrays: bool = False

    def __post_init__(self) -> None:
        for name in self.names:
            if name and self.names.count(name) > 1:
                raise InvalidPredictionsError(f"the table names the column {name!r} twice")

    def readable(self, names: Sequence[str]) -> dict[str, Column]:
        """Return those of some columns that can be read, such as no lists of text."""
        try:
            return dict(zip(names, self.read(names), strict=True))
        except InvalidPredictionsError:
            columns = {}
            for name in names:
                with suppress(InvalidPredictionsError):
                    columns[name] = self.read([name])[0]
            if not columns:
                raise
            return columns

    def listing(self, names: Sequence[str]) -> str:
        """Return the names of columns, those of arrays with their shapes."""
        if not self.arrays:
            return listing(names)
        shapes = {name: str(array.shape) for name, array in self.readable(names).items()}
        return ", ".join(f"{name} {shapes.get(name, '')}".strip() for name in names)

    def advice(self, what: str) -> str:
        """Return how a column is named by whoever asked for the table."""
        if not self.frame:
            return f"{what}= (--{what})"
        if what == "label":
            return "labels='COLUMN'"
        return "a table that has no others"

    def to_be_sure(self, what: str) -> str:
        """Return how to say what was found, after a note on that."""
        return "" if self.frame else f"; name it with {what}= (--{what}) to be sure"


def listing(names: Iterable[str]) -> str:
    """Return all the names."""
    return ", ".join(filter(None, names)) or "no columns"


def is_number(cell: object) -> bool:
    """Return whether a cell is a number, also one that is written, and no boolean."""
    if isinstance(cell, (bool, np.bool_)):
        return False
    try:
        float(cell)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return False
    return True
