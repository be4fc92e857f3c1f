"""What all answers share: frozen, drawn and printed alike, to JSON and back."""

from __future__ import annotations

import json
import zlib
from base64 import b85decode, b85encode
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import partial
from html import escape
from importlib import import_module
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np

from caltest._base.progress import Ended
from caltest._version import __version__
from caltest.errors import StatisticError, printable
from caltest.results import tables, verdicts

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from caltest.plots.canvas import Picture
    from caltest.results.designs import FoldSummary, HorizonSummary
    from caltest.results.subgroups import Subgroups

#: What fields become when a result is made, by their annotation: JSON knows lists and words only.
CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "bytes": lambda v: v if isinstance(v, bytes) else zlib.decompress(b85decode(v)),
    "float": lambda v: float("nan") if v is None else v,  # JSON has no NaN
    "FloatArray": partial(np.asarray, dtype=np.float64),
    "IntArray": partial(np.asarray, dtype=np.int64),
    **{kind.__name__: kind for kind in verdicts.Verdict.__subclasses__()},
    "tuple[Finding | None, ...]": lambda words: tuple(w and verdicts.Finding(w) for w in words),
    "tuple[ComparisonVerdict, ...]": lambda words: tuple(map(verdicts.ComparisonVerdict, words)),
}


def short(name: str) -> str:
    """Return the name of a statistic or binning without its options, for a label."""
    return name.partition("(")[0]


def ending(*ends: str) -> Ended:
    """Return how several runs ended together."""
    return "interrupted" if "interrupted" in ends else "complete"


def go_on(*ends: str) -> None:
    """End what Ctrl-C has interrupted, where part of an answer is none."""
    if "interrupted" in ends:
        raise KeyboardInterrupt


@dataclass(frozen=True)
class Record:
    """A result, or a part of one: frozen, with a dictionary form and its inverse."""

    #: The classes by name, so that records within records can be rebuilt.
    kinds: ClassVar[dict[str, type[Record]]] = {}
    #: The function of :mod:`caltest.plots` that draws it, with its module; "" where there is none.
    plotter: ClassVar[str] = ""

    def __init_subclass__(cls) -> None:
        Record.kinds[cls.__name__] = cls

    def __post_init__(self) -> None:
        for field in fields(self):
            value = vars(self)[field.name]
            if str(field.type) in CONVERSIONS:
                object.__setattr__(self, field.name, CONVERSIONS[str(field.type)](value))
            elif isinstance(value, (str, tuple)):
                object.__setattr__(self, field.name, _plain_names(value))

    def as_dict(self) -> dict[str, Any]:
        """Return plain numbers, strings, lists and dictionaries, without null distributions."""
        fields_of_kind = sorted(fields(self), key=lambda field: bool(field.kw_only))
        names = [field.name for field in fields_of_kind if "transient" not in field.metadata]
        return {"kind": type(self).__name__} | {k: _plain(vars(self)[k]) for k in names}

    def to_json(self, indent: int | None = 2) -> str:
        """Return :meth:`as_dict` as JSON."""
        return json.dumps(self.as_dict(), indent=indent, ensure_ascii=False)

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Self:
        """Rebuild from :meth:`as_dict`, without null distributions."""
        values = dict(content)
        kind = values.pop("kind", cls.__name__)
        if kind != cls.__name__:
            raise ValueError(f"this is the dictionary of a {kind}, not of a {cls.__name__}")
        return cls(**{name: _frozen(value) for name, value in values.items()})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Rebuild from :meth:`to_json`."""
        return cls.from_dict(json.loads(text))

    def plot(self, ax: Axes | None = None, **options: object) -> Picture:
        """Draw it as a :class:`caltest.plots.Picture`; StatisticError where there is none.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; by default a new figure, one column (3.25 in) wide.
        **options
            Those of the function of :mod:`caltest.plots` that draws such results.
        """
        if not self.plotter:
            raise StatisticError(f"there is no picture of a {type(self).__name__}: print it")
        # Pictures know results; results know the names of their pictures only.
        module, _, function = self.plotter.rpartition(".")
        return vars(import_module(f"caltest.plots.{module}"))[function](self, ax, **options)


@dataclass(frozen=True, kw_only=True)
class Result(Record):
    """What all answers share.

    Attributes
    ----------
    n, n_classes : int
        Number of observations, and of classes before the lens.
    n_resamples, seed : int, int or None
        Replicates that the numbers rest on, 0 where nothing was simulated, and the seed, if known.
    ended : {"complete", "early", "interrupted"}
        Whether all replicates were drawn, or ended by sequential stopping or Ctrl-C.
    notes : tuple of str
        What was done to the input on the way in, and what else should be known.
    effective_n, n_clusters : float and int, optional
        (Σ w)² / Σ w² of weighted rows, and the number of clusters.
    folds, series, followup : FoldSummary, HorizonSummary and FollowupSummary, optional
        How folds were aligned, overlapping outcomes are allowed for, and rows were followed.
    copies : int
        Rows that repeat another more often than by chance; of several models the most.
    version : str
        The version of caltest.
    """

    n: int
    n_classes: int
    n_resamples: int = 0
    seed: int | None = None
    ended: str = "complete"
    notes: tuple[str, ...] = ()
    effective_n: float | None = None
    n_clusters: int | None = None
    folds: FoldSummary | None = None
    series: HorizonSummary | None = None
    copies: int = 0
    followup: Record | None = None
    version: str = __version__

    #: The field that is the result as a single number, if one is.
    number: ClassVar[str | None] = None
    #: The columns of its table, attributes or "head=attribute", those of the records in some fields
    #: where these are named; none where the table is a list of its fields.
    columns: ClassVar[tuple[str, ...]] = ()
    records: ClassVar[tuple[str, ...]] = ()
    #: What is shown of it where it is that of a subgroup, and what all subgroups are asked.
    of_subgroups: ClassVar[tuple[str, ...]] = ()
    of_all: ClassVar[str] = "calibrated in every subgroup"
    #: What its report begins with, and its recipe, as a template.
    title: ClassVar[str] = ""
    procedure: ClassVar[str] = ""

    def __float__(self) -> float:
        if self.number is None:
            raise TypeError(f"a {type(self).__name__} is more than one number: name the field")
        return float(vars(self)[self.number])

    @property
    def recipe(self) -> str:
        """One line that says how the numbers were made, fit for a paper."""
        seed = [] if self.seed is None else [f"seed={self.seed}"]
        draws = [f"B={self.n_resamples}", *seed] if self.n_resamples else []
        data = [self._rows() + self._design, f"K={self.n_classes}", f"caltest {self.version}"]
        return " · ".join([*self._procedure(), *draws, *data])

    def _procedure(self) -> list[str]:
        """Return what the recipe begins with: what was computed, of what, and how."""
        return [self.procedure.format(self)]

    @property
    def _percent(self) -> str:
        """The level of intervals or bands, as words have it."""
        return f"{100 * vars(self)['level']:g} %"

    def _rows(self) -> str:
        return f"n={self.n}"

    @property
    def _design(self) -> str:
        facts = "" if self.n_clusters is None else f", {self.n_clusters} clusters"
        facts += "" if self.folds is None else f", {self.folds.count} folds"
        facts += "" if self.series is None else f", horizon {self.series.horizon}"
        if self.series is not None and self.series.rows > self.series.times:
            facts += f" of {self.series.times} times"
        weighted = f", weighted: effective n = {self.effective_n or 0.0:.1f}"
        return facts + ("" if self.effective_n is None else weighted)

    def _foot(self) -> list[str]:
        """Return the lines that end a report."""
        cut = ["  Interrupted: simulated numbers rest on the resamples drawn until then."]
        cut = cut if self.ended == "interrupted" else []
        followed = [] if self.followup is None else [f"  follow-up   {self.followup}"]
        notes = [f"  Note: {note}." for note in self.notes]
        return [*cut, *followed, *notes, "", f"  {self.recipe}"]

    def _tables(self) -> list[tables.Columns]:
        """Return what its tables show: one value, or one a row, in every column."""
        if not self.columns:  # a list of its fields
            values_of = {f.name: vars(self)[f.name] for f in fields(self) if not f.kw_only}
            plain = {k: v for k, v in values_of.items() if isinstance(v, (str, int, float, tuple))}
            texts = [tables.cell(name, value) for name, value in plain.items()]
            return [{"": [name.replace("_", " ") for name in plain], "value": texts}]
        heads = {head: name or head for head, _, name in (c.partition("=") for c in self.columns)}
        parts = [vars(self)[name] for name in self.records]
        rows = [row for part in parts for row in (part if isinstance(part, tuple) else [part])]
        table = tables.attributes(rows or [self], heads)
        if not rows and isinstance(next(iter(table.values()))[0], (tuple, np.ndarray)):
            return [{head: values for head, (values,) in table.items()}]
        return [table]

    def _all_tables(self) -> list[tables.Columns]:
        """Return its tables, and that of its subgroups."""
        return [*self._tables(), *(groups.table for groups in self._groups())]

    def _groups(self) -> list[Subgroups]:
        """Return what subgroups show, if it was asked."""
        groups: Subgroups | int | None = vars(self).get("subgroups")
        return [groups] if isinstance(groups, Record) else []

    def _facts(self) -> list[str]:
        """Return the lines that its text shows in place of tables."""
        return []

    def _appendix(self) -> list[str]:
        """Return the lines that its text shows below the finding."""
        return [line for groups in self._groups() for line in ("", str(groups))]

    def _in_words(self) -> list[str]:
        """Return the finding in sentences."""
        return []

    def _sentences(self) -> list[str]:
        groups = [text for part in self._groups() for text in part.in_words()]
        foot = [line.strip() for line in self._foot() if line.strip()]
        return [*self._in_words(), *groups, *foot]

    def __str__(self) -> str:
        facts = self._facts()
        lines = facts or [line for table in self._tables() for line in (*tables.aligned(table), "")]
        words = [f"  {line}" for text in self._in_words() for line in text.split("\n")]
        below = [*words, *self._appendix(), *self._foot()]
        if lines[-1] == "" and (below[0] == "" or not (facts or words)):
            lines.pop()
        return "\n".join([*([self.title] if self.title else []), *lines, *below])

    def to_markdown(self) -> str:
        """Return the result as tables of Markdown, with what was found and how it was made."""
        texts = [tables.markdown(table) for table in self._all_tables()]
        return "\n\n".join([*texts, *map(tables.markdown_text, self._sentences())]) + "\n"

    def to_latex(self) -> str:
        """Return the tables of the result in LaTeX, under their recipe; they need booktabs."""
        recipe = " ".join(self.recipe.split())
        return "\n\n".join([f"% {recipe}", *map(tables.latex, self._all_tables())]) + "\n"

    def _repr_html_(self) -> str:
        """Show the result in a notebook."""
        sentences = [f"<p>{escape(text)}</p>" for text in self._sentences()]
        return "\n".join(["<div>", *map(tables.html, self._all_tables()), *sentences, "</div>"])


def _plain_names(value: object) -> object:
    if isinstance(value, tuple):  # words within tuples lose their control characters, too
        return tuple(map(_plain_names, value))
    return printable(value) if type(value) is str else value


def _plain(value: object) -> object:
    if isinstance(value, Record):
        return value.as_dict()
    if isinstance(value, str):
        return str(value)  # a verdict becomes its words
    if isinstance(value, bytes):
        return b85encode(zlib.compress(value)).decode()
    if isinstance(value, (np.ndarray, np.generic)):
        value = value.tolist()
    if isinstance(value, (tuple, list)):
        return [_plain(v) for v in value]
    return None if value != value else value  # JSON has no NaN


def _frozen(value: object) -> object:
    if isinstance(value, list):
        return tuple(_frozen(v) for v in value)
    if isinstance(value, dict) and "kind" in value:
        return Record.kinds[value["kind"]].from_dict(value)
    return value
