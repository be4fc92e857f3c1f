"""What all answers share, and what they say of subgroups, clusters, folds and follow-up."""

from __future__ import annotations

import json
import re
import zlib
from base64 import b85decode, b85encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import MISSING, dataclass, field, fields, replace
from functools import partial
from html import escape
from importlib import import_module
from inspect import cleandoc
from pathlib import Path
from textwrap import indent, wrap
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self, TypeVar, dataclass_transform

import numpy as np

from caltest._base.arrays import Ended
from caltest._version import __version__
from caltest.errors import StatisticError, printable
from caltest.results import rendering as tables
from caltest.results import verdicts
from caltest.results.rendering import Columns, aligned, attributes, format_p, percent
from caltest.results.verdicts import Finding

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Drawing(Protocol):
    """A picture of a result, as :class:`caltest.plots.Picture` is one; plots know results."""

    @property
    def ax(self) -> Axes: ...
    @property
    def figure(self) -> Figure: ...
    @property
    def artists(self) -> Mapping[str, object]: ...
    @property
    def panels(self) -> Sequence[Drawing]: ...
    @property
    def recipe(self) -> str: ...
    def save(self, path: str | Path) -> None: ...
    def to_svg(self) -> str: ...


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
        for f in fields(self):
            value = vars(self)[f.name]
            if str(f.type) in CONVERSIONS:
                object.__setattr__(self, f.name, CONVERSIONS[str(f.type)](value))
            elif isinstance(value, (str, tuple)):
                object.__setattr__(self, f.name, _plain_names(value))

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

    def plot(self, ax: Axes | None = None, **options: object) -> Drawing:
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
    clean = type(value) is not str or value.isprintable()  # most names: nothing to take out
    return value if clean else printable(str(value))


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


# ------------------------------------------------------------------------------
# The description of a result: what its fields mean, its title, its table and its picture.


Class = TypeVar("Class", bound=type)


#: What types are called in documentation.
TYPES = {"FloatArray": "ndarray{}", "IntArray": "ndarray{}, int"}


#: The end of every list of attributes.
SHARED = "n, n_classes, n_resamples, seed, ended, notes, version\n    As for every :class:`Result`"


def entry(
    meaning: str, kind: str = "", *, default: object = MISSING, transient: bool = False
) -> Any:
    """Describe a field: what it means, and its type in words where that says more.

    Fields after it without a description share this one. A transient field is no part of the
    dictionary form.
    """
    metadata = {"meaning": meaning, "kind": kind} | ({"transient": True} if transient else {})
    return field(default=default, metadata=metadata, repr=not transient, compare=not transient)


@dataclass_transform(frozen_default=True, field_specifiers=(entry, field))
def described(
    *,
    eq: bool = True,
    title: str = "",
    number: str = "",
    procedure: str = "",
    shape: str = "",
    columns: str = "",
    records: str = "",
    of_subgroups: str = "",
    plotter: str = "",
    draws: str = "",
) -> Callable[[Class], Class]:
    """Make a frozen dataclass of a class, with all that is printed, drawn and documented of it.

    ``title`` heads its text; ``number`` is the field that stands for it; ``procedure`` is a
    template of what its recipe begins with; ``columns`` are the attributes of its table, or
    "head=attribute", of the records in the fields ``records`` if these are given, and
    ``of_subgroups`` those of a table of subgroups; ``plotter`` is the function of
    :mod:`caltest.plots` that draws it; ``shape`` is that of its arrays; ``draws`` says what
    ``n_resamples`` counts.
    """
    words = {"title": title, "number": number, "procedure": procedure, "plotter": plotter}
    lists = {"columns": columns, "records": records, "of_subgroups": of_subgroups}
    facts = words | {name: tuple(listed.split()) for name, listed in lists.items()}

    def make(cls: Class) -> Class:
        for name, value in facts.items():
            if value:
                setattr(cls, name, value)
        dataclass(frozen=True, eq=eq)(cls)
        cls.__doc__ = _documented(cls, shape, draws)
        return cls

    return make


def _documented(cls: Any, shape: str, draws: str) -> str:
    """Return a docstring with the section on attributes that its fields tell."""
    names: list[str] = []
    parts: list[str] = []
    entries = [f for f in fields(cls) if not f.kw_only]
    for j, one in enumerate(entries):
        names.append(one.name)
        if j + 1 < len(entries) and "meaning" not in entries[j + 1].metadata:
            continue
        first = entries[j + 1 - len(names)]
        kind = first.metadata["kind"] or _in_words(str(first.type), shape)
        text = "\n".join(f"    {line}" for line in wrap(first.metadata["meaning"], 92))
        parts.append(f"{', '.join(names)} : {kind}\n{text}")
        names = []
    if len(entries) < len(fields(cls)):  # what all results share comes by keyword
        parts.append(SHARED + (f"; ``n_resamples`` {draws}." if draws else "."))
    listed = "\n".join(["Attributes", "----------", *parts])
    head, notes, rest = re.split(r"(\n\nNotes\n|\Z)", cleandoc(cls.__doc__), maxsplit=1)
    return indent(f"{head}\n\n{listed}{notes}{rest}\n", "    ").lstrip()


def _in_words(kind: str, shape: str) -> str:
    """Return an annotation as documentation says it."""
    for name, words in TYPES.items():
        kind = kind.replace(name, words.format(f" of shape {shape}" if shape else ""))
    kind = re.sub(r"tuple\[(\w+), (\.\.\.|\1(, \1)*)\]", r"tuple of \1", kind)
    return kind.replace(" | None", " or None")


# ------------------------------------------------------------------------------
# How rows depend on each other: what was learnt of clusters, folds and forecasts far ahead.


#: z beyond which sizes of clusters, or weights, and residuals are not associated by chance.
ASSOCIATED = 3.29


#: Chance below which folds were not dealt at random, and z of the contrast that folds leave.
UNLIKELY, MIRRORED = 1e-3, -3.0


def degrees(kinds: Mapping[str, Sequence[float | None]], estimated: bool) -> str:
    """Say with which chance rows have each in common, along one column of clusters or two."""
    shares = []
    for kind, limits in kinds.items():
        values = [limit for limit in limits if limit is not None]
        words = " and ".join(f"{limit:.3g}" for limit in values)
        if estimated:
            words = f"at most {words}" if any(values) else "below 0.1"
        shares += [f"{kind}: {words}"] if values else []
    return f"chance λ that two rows {', '.join(shares)}{' (95 % limits)' if estimated else ''}"


def _sizes(parts: ClusterSummary | FoldSummary) -> str:
    larger = f"–{parts.largest}" if parts.largest > parts.smallest else ""
    return f"{parts.count} of {parts.smallest}{larger} rows"


@described()
class ClusterSummary(Record):
    """The clusters behind a test, and the dependence that its null distribution allows for."""

    count: int = entry("The number of clusters, and their rows.")
    smallest: int
    largest: int
    effective: float = entry("(Σ v_g)² / Σ v_g², v_g the variance of the sum of a cluster.")
    shared: float = entry("Clusters expected to have a rarer label, if they shared labels.")
    dependence: float | None = entry(
        "λ, the degree to which rows of a cluster share their label in what is redrawn, and that "
        "to which they share whether the likeliest label is right; None where not tried."
    )
    correctness: float | None
    in_parts: float = entry("The largest λ of a part of the rows: where some agree more than all.")
    estimated: bool = entry("Whether λ is the upper 95 % limit of what labels show, or given.")
    inflation: float = entry(
        "κ, above 1 where labels of a cluster agree more than any redraw allows: replicates of a "
        "statistic of degree d in the residuals are multiplied by κ^{d/2}."
    )
    size_effect: float = entry("z of the association of the size of a cluster and its residuals.")
    inflation_applied: bool = entry(
        "False where replicates could not be multiplied, because the statistic sees labels and "
        "the scheme was asked for by name: p-values are then too small where κ > 1.",
        default=True,
    )
    name: str = entry("What the clusters are called, of two columns.", default="")
    beside: ClusterSummary | None = entry("The clusters of the second column.", default=None)

    @property
    def along(self) -> tuple[ClusterSummary, ...]:
        """The columns along which rows may depend, or the first where neither shows that."""
        if self.beside is None:
            return (self,)
        return tuple(each for each in (self, self.beside) if each.in_parts > 0.0) or (self,)

    @property
    def notes(self) -> tuple[str, ...]:
        """What the dependence means for a reader, and how clusters are not all alike."""
        notes = [
            "rows of a cluster depend on each other, which makes errors by chance larger: floors "
            "and p-values allow for it as far as labels show it (λ)"
        ]
        remedy = "test with null=OneRowPerCluster()"
        if self.beside is not None:
            remedy = "test rows of which no two share a cluster of either column"
        if self.inflation > 1.0 and self.inflation_applied:
            notes.append(
                "rows of a cluster agree more than outcomes in common explain: errors by chance "
                f"are taken as {self.inflation**0.5:.2f} times as large (√κ), so that the test "
                "stays valid and finds less"
            )
        if abs(self.size_effect) > ASSOCIATED:
            notes.append(
                f"residuals change with the size of the cluster (z = {self.size_effect:+.1f}): the "
                f"test is valid if sizes do not depend on outcomes; {remedy} if they may"
            )
        if not self.inflation_applied:
            notes.append(
                "κ could not be applied to a statistic that sees labels: the p-value is too "
                f"small; {remedy}"
            )
        return tuple(notes)

    def _of(self) -> str:
        return f"{_sizes(self)}, as informative as {self.effective:.1f} of equal weight"

    def __str__(self) -> str:
        columns = self._of()
        along = [self] if self.beside is None else [self, self.beside]
        if self.beside is not None:
            columns = f"{self.name}: {columns} · {self.beside.name}: {self.beside._of()}"
        kinds = {
            "share their label": [each.dependence for each in along],
            "are right together": [each.correctness for each in along],
        }
        applied = "" if self.inflation_applied else " (not applied)"
        within = self.in_parts > max(self.dependence or 0.0, self.correctness or 0.0)
        parts = f" · λ up to {self.in_parts:g} where rows agree more than elsewhere" * within
        more = f" · inflation κ {self.inflation:.2f}{applied}" * (self.inflation > 1.0)
        return f"{columns} · {degrees(kinds, self.estimated)}{parts}{more}"


@described()
class FoldSummary(Record):
    """The folds of cross-validated predictions, and what aligning their levels has changed.

    Of more than two classes levels are those of the likeliest class.
    """

    count: int = entry("The number of folds, and their rows.")
    smallest: int
    largest: int
    moved: float = entry("The largest |d_k|, by which the mean prediction of a fold is moved.")
    contrast: float = entry("Σ w d r / √Σ w² d² v over rows: N(0, 1) if models know no label.")
    random: float = entry("The chance that folds of rows dealt at random differ as much.")
    memorised: bool = entry(
        "Whether models memorise groups of rows, and whether the test was made within folds.",
        default=False,
    )
    within: bool = False

    @property
    def share(self) -> float:
        """The share of the rows that each model was fitted on."""
        return 1.0 - 1.0 / self.count

    @property
    def _within(self) -> str:
        """How a test within folds differs, in one sentence."""
        return (
            "models memorise groups of rows, such as sites (close predictions lie in one fold far "
            "more often than by chance): the statistic is computed within folds, without "
            "alignment, and its excess over the noise floor is divided by "
            f"{self.share**-0.5:.3g}. This has about half the power of fresh rows"
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """What a reader must know about cross-validated predictions."""
        aligned = (
            "folds are aligned, each moved to the mean prediction of all rows: it is asked whether "
            "predictions are too high or low in all, and how they are spread, not whether one fold "
            "is too high beside another"
        )
        notes = [
            self._within if self.within else aligned,
            "models of other folds know these labels, which makes p-values approximate; they are "
            f"about models fitted on {100 * self.share:.0f} % of the rows, not one refitted on all",
        ]
        if self.memorised and not self.within:
            notes.append(
                "models memorise groups of rows, such as sites: errors of aligned folds are then "
                "larger than those of fresh rows, and only tests are made within folds"
            )
        if self.random < UNLIKELY:
            notes.append(
                f"folds differ more than rows dealt at random (p = {self.random:.0e}): if they are "
                "sites or periods ask by= for each, what they share is not tested"
            )
        if self.contrast < MIRRORED and not self.within:
            notes.append(
                "folds with more events have lower predictions, as cross-validation by itself "
                "makes them: this would fail any test, and was taken out by aligning the folds"
            )
        return tuple(notes)

    def __str__(self) -> str:
        levels = f"levels moved by at most {self.moved:.2g}"
        if self.within:
            levels = "tested within folds, as models memorise groups of rows"
        return (
            f"{_sizes(self)} · {levels} · about "
            f"models fitted on {100 * self.share:.0f} % of the rows"
        )


@described()
class HorizonSummary(Record):
    """Forecasts several steps ahead, and the dependence of overlapping outcomes that is allowed."""

    horizon: int = entry("By how many times forecasts are ahead.")
    times: int = entry("The number of different times.")
    dependence: float | None = entry(
        "As of clusters, of rows less than ``horizon`` times apart; None where not tried, or where "
        "blocks of four horizons are the units instead.",
        default=None,
    )
    correctness: float | None = None
    estimated: bool = entry("Whether λ is the upper 95 % limit of what labels show.", default=True)
    rows: int = entry("The number of rows; several may have one time.", default=0)

    @property
    def notes(self) -> tuple[str, ...]:
        """What rows of the same times mean for a reader."""
        near = f" or less than {self.horizon} times apart" * (self.horizon > 1)
        note = f"rows are of {self.times} times: those of one time{near} are taken to depend"
        return (note,) * (self.rows > self.times)

    def __str__(self) -> str:
        several = self.rows > self.times
        of = f"{self.times} times, {self.rows} rows" if several else f"{self.times} rows"
        if self.dependence is None and self.correctness is None:
            return f"{self.horizon} of {of}"
        kinds = {"share their label": [self.dependence], "are right together": [self.correctness]}
        return f"{self.horizon} of {of} · {degrees(kinds, self.estimated)}"


# ------------------------------------------------------------------------------
# The answers for subgroups of the rows, and which of several errors is the worst.


#: Chance that any of the lower limits by which the worst is found is too high.
WORST_ALPHA = 0.05


#: So many subgroups are printed, of more only the worst, and so many sentences on single ones.
MOST_PRINTED, WORST_PRINTED, MOST_NOTES = 30, 20, 5


#: What there is of each of them, if it was asked.
PER_SUBGROUP = (
    *("names", "counts", "tests", "adjusted", "alike", "predicted", "observed", "findings"),
)


class Certain(Protocol):
    """A result that knows which error is certain, and its estimate."""

    def certain_error(self, alpha: float) -> tuple[float, float]: ...


def worst_of(tests: Sequence[Certain | None]) -> int:
    """Return the number of the test whose error is certainly the largest; None are passed over.

    It has the highest lower limit, at a level for all together (Bonferroni), of equal limits the
    larger estimate. P-values do not say: of many rows they differ by no more than rounding.
    """
    tested = {j: test for j, test in enumerate(tests) if test is not None}
    share = WORST_ALPHA / len(tested)
    return max(tested, key=lambda j: tested[j].certain_error(share))


@described(plotter="forests.forest")
class Subgroups(Record):
    """The same question, asked of every subgroup by itself, and whether they differ."""

    names: tuple[str, ...] = entry("The subgroups, in the order of their names.")
    counts: tuple[int, ...] = entry("Their numbers of rows.")
    tests: tuple[Any, ...] = entry(
        "What was asked of each; None where it cannot be tested, which ``notes`` explain.",
        "tuple of Result or None",
    )
    adjusted: tuple[float | None, ...] = entry("Their p-values, adjusted for their number.")
    pvalue: float = entry("The smallest of these.")
    adjust: str = entry("By Holm, of subgroups that share rows by max-T.", '{"Holm", "max-T"}')
    n: int = entry("Rows of all together, each counted once.")
    alike: tuple[float | None, ...] = entry(
        'The adjusted p-value of "calibrated, or not, as other rows are"; None if not tested.',
        default=(),
    )
    notes: tuple[str, ...] = entry("What could not be tested, and why.", default=())
    predicted: tuple[float, ...] = entry(
        "Mean prediction of each, how often the event was, and what an audit says of it.",
        "tuple of float, tuple of float, tuple of Finding or None",
        default=(),
    )
    observed: tuple[float, ...] = ()
    findings: tuple[Finding | None, ...] = ()

    @property
    def tested(self) -> list[Any]:
        """The tests that there are."""
        return [test for test in self.tests if test is not None]

    @property
    def worst(self) -> int:
        """The number of the subgroup whose error is certainly the largest."""
        return worst_of(self.tests)

    def worst_first(self) -> Subgroups:
        """Return them in the order of how large their errors certainly are."""
        share = WORST_ALPHA / len(self.tested)
        errors = [(0.0, -1.0) if t is None else t.certain_error(share) for t in self.tests]
        order = sorted(range(len(errors)), key=lambda j: errors[j], reverse=True)
        return self._each(lambda values: tuple(values[j] for j in order))

    def first(self, most: int) -> Subgroups:
        """Return the first of them only."""
        return self._each(lambda values: values[:most])

    def _each(self, pick: Callable[[tuple[object, ...]], tuple[object, ...]]) -> Subgroups:
        lists = {name: vars(self)[name] for name in PER_SUBGROUP}
        picked: dict[str, Any] = {name: pick(values) for name, values in lists.items() if values}
        return replace(self, **picked)

    @property
    def alike_pvalue(self) -> float | None:
        """The smallest of ``alike``: "are all calibrated alike?"; None where not tested."""
        return min((p for p in self.alike if p is not None), default=None)

    @property
    def recipe(self) -> str:
        """One line that says how the numbers were made."""
        kind = f"{len(self.names)} subgroups, {self.adjust}"
        return f"{kind} · {replace(self.tested[0], n=self.n).recipe}"

    @property
    def table(self) -> Columns:
        """A row for every subgroup."""
        columns = attributes(self.tests, {name: name for name in self.tested[0].of_subgroups})
        last = {"alike": self.alike} if self.alike else {}
        named = {"subgroup": self.names, "n": self.counts}
        return {**named, **columns, "adjusted": self.adjusted, **last}

    @property
    def judged(self) -> Columns:
        """A row for every subgroup, with what an audit says of it."""
        means = list(zip(self.predicted, self.observed, strict=True))
        return {
            **{"subgroup": self.names, "n": self.counts},
            "predicted": [percent(p, y) for p, y in means],
            "observed": [percent(y, p) for p, y in means],
            **attributes(self.tests, {"error": "shown_estimate", "if calibrated": "shown_floor"}),
            **{"adjusted": self.adjusted, "finding": self.findings},
        }

    def in_words(self) -> list[str]:
        """Return the finding in sentences."""
        sentences = [f"{self.tested[0].of_all}: p {format_p(self.pvalue)} ({self.adjust})"]
        if (p := self.alike_pvalue) is not None:
            sentences.append(f"calibrated alike: p {format_p(p)} (residuals permuted)")
        return sentences + [f"Note: {note}." for note in self.remarks]

    @property
    def remarks(self) -> list[str]:
        """The notes that are printed, and how many others there are."""
        more = len(self.notes) - MOST_NOTES
        further = f"there are {more} more such notes, which its JSON holds"
        return [*self.notes[:MOST_NOTES], *[further] * (more > 0)]

    def __str__(self) -> str:
        shown, many = self, len(self.names) > MOST_PRINTED
        if many:
            shown = self.worst_first().first(WORST_PRINTED)
        others = f"  and {len(self.names) - WORST_PRINTED} others, whose errors are less certain; "
        others += "JSON and the page of a report hold all"
        words = (f"  {line}" for line in self.in_words())
        return "\n".join([*aligned(shown.table), *[others] * many, *words])


# ------------------------------------------------------------------------------
# What results say of follow-up.


@described()
class FollowupSummary(Record):
    """How far rows were followed, in results of :class:`caltest.Followup`."""

    horizon: float = entry("By when the event occurs.")
    events: int = entry(
        "Rows with the event by the horizon, with a competing event, free of both at the horizon, "
        "and unknown as they were censored before."
    )
    competing: int
    free: int
    unknown: int
    strata: int = entry("Strata in which the curve of censoring was fitted.")
    by_prediction: bool = entry("Whether these are groups by rank of the prediction.")
    heaviest: float = entry("The largest weight.")
    effective_n: float = entry("(Σ W)² / Σ W², and its share of all rows.")
    share: float
    lost: float = entry("1 − Σ W / n: rows that no row followed to the horizon stands for.")
    smallest: int = entry("Rows of the smallest stratum.")

    @property
    def known(self) -> int:
        """Rows of which it is known whether the event occurred by the horizon."""
        return self.events + self.competing + self.free

    def __str__(self) -> str:
        by = "by prediction" if self.by_prediction else "as given"
        strata = f"{self.strata} groups {by}" if self.strata > 1 else "all together"
        return (
            f"by {self.horizon:g}: {self.events} had the event, {self.competing} a competing one, "
            f"{self.free} neither, {self.unknown} were censored before, for whom others of their "
            f"group stand ({strata}; largest weight {self.heaviest:.1f}, effective n "
            f"{self.effective_n:.0f})"
        )
