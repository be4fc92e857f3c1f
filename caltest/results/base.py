"""Base classes of results, and their parts on subgroups, clusters, folds and follow-up.

:class:`Record` converts to dictionaries and data frames, :class:`Result` adds title, tables,
sentences and the recipe; summaries of the design are fields of results.
"""

from __future__ import annotations

import json
import zlib
from base64 import b85decode, b85encode
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, Self

import numpy as np

from caltest._base.arrays import Ended
from caltest._version import __version__
from caltest.errors import StatisticError, printable
from caltest.results import rendering, verdicts
from caltest.results.rendering import (
    Card,
    Columns,
    Content,
    aligned,
    attributes,
    format_p,
    listed_fields,
    p_is,
    percent,
)
from caltest.results.verdicts import Finding

if TYPE_CHECKING:
    import pandas
    import polars
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


class Drawing(Protocol):
    """Protocol of a picture of a result, which :class:`caltest.plots.Picture` meets.

    It has the axes and the figure of matplotlib, the artists by name, the panels, a recipe in a
    line, and can be saved or returned as SVG.
    """

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


#: The line with a command that takes the clusters that a doubt names.
CLUSTERS_CALL = "To allow for these clusters, run: {}"


#: What fields become when a result is made, by their annotation: JSON knows lists and words only.
CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "bytes": lambda v: v if isinstance(v, bytes) else zlib.decompress(b85decode(v)),
    "float": lambda v: float("nan") if v is None else v,  # JSON has no NaN
    "tuple[float, ...]": lambda vs: tuple(float("nan") if v is None else v for v in vs),
    "tuple[float, float]": lambda vs: tuple(float("nan") if v is None else v for v in vs),
    "FloatArray": partial(np.asarray, dtype=np.float64),
    "IntArray": partial(np.asarray, dtype=np.int64),
    **{kind.__name__: kind for kind in verdicts.Verdict.__subclasses__()},
    "tuple[Finding | None, ...]": lambda words: tuple(w and verdicts.Finding(w) for w in words),
    "tuple[ComparisonVerdict, ...]": lambda words: tuple(map(verdicts.ComparisonVerdict, words)),
}


def short(name: str) -> str:
    """Return the name of a statistic or binning without its options: "ECE" for "ECE(10)"."""
    return name.partition("(")[0]


#: What an ECE measures; with more than two outcomes the distances are of total variation.
MEAN_ERROR, HALF_THE_SUM = (
    "Error: mean |observed − predicted| of the bins, weighted by rows",
    "; of several outcomes, half the sum.",
)


def is_mean_error(statistic: str) -> bool:
    """Return whether a statistic, written as in Python, is what ``MEAN_ERROR`` says."""
    return short(statistic) == "ECE" and "distance='tv'" in statistic


#: What the lens TopK(1) assesses, with the end of "likelier" or "likeliest".
CONFIDENCE = "confidence, the probability of the likeli{} class"


def mean_error_in_words(lens: str, n_classes: int) -> str:
    """Return the sentence on what an ECE measures through a lens, for K = ``n_classes``."""
    binary = n_classes == 2 or lens.startswith(("TopK(1)", "OneVsRest(", "Cumulative("))
    return MEAN_ERROR + ("." if binary else HALF_THE_SUM)


def with_meaning(name: str, n_classes: int, lens: str = "") -> str:
    """Return a lens or statistic, written as in Python, with its meaning if it needs words.

    ``n_classes`` is the number of classes, K, and ``lens`` the lens of a statistic.

    Examples
    --------
    >>> with_meaning("TopK(1)", 2)
    'TopK(1)  (confidence, the probability of the likelier class)'
    """
    said = {"TopK(1)": CONFIDENCE.format("er" if n_classes == 2 else "est")}.get(name, "")
    if is_mean_error(name):
        said = mean_error_in_words(lens, n_classes)[len("Error: ") : -1]
        said = said.replace(", weighted by rows", "")
    return f"{name}  ({said})" if said else name


def lens_in_words(lens: str, n_classes: int) -> list[str]:
    """Return a sentence on what a lens assesses, in a list; [] if its name says it.

    ``lens`` is written as in Python, and ``n_classes`` is the number of classes, K.
    """
    name, _, said = with_meaning(lens, n_classes).partition("  (")
    return [f"Lens: {name} = {said.removesuffix(')')}."] * bool(said)


def ending(*ends: str) -> Ended:
    """Return how several runs ended together: "interrupted" if one of them was, else "complete".

    ``ends`` are the endings of the runs: "complete", "early" or "interrupted".
    """
    return "interrupted" if "interrupted" in ends else "complete"


def go_on(*ends: str) -> None:
    """Raise KeyboardInterrupt if a run was interrupted, where a partial answer is useless.

    ``ends`` are the endings of the runs: "complete", "early" or "interrupted".
    """
    if "interrupted" in ends:
        raise KeyboardInterrupt


@dataclass(frozen=True, eq=False)
class Record:
    """Base class of results and their parts: frozen, with a dictionary form and its inverse.

    Two records are equal if they have the same class and equal dictionary forms: NaN equals NaN,
    arrays are compared by value, and null distributions are ignored. Pickling and JSON therefore
    give equal records.
    """

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

    def __eq__(self, other: object) -> bool:
        if self is other:
            return True
        if type(self) is not type(other):
            return NotImplemented
        mine, others = vars(self), vars(other)
        return all(_plain(mine[name]) == _plain(others[name]) for name in self._kept())

    def __hash__(self) -> int:
        values = vars(self)
        return hash((type(self), *(_hashable(_plain(values[name])) for name in self._kept())))

    def _kept(self) -> list[str]:
        """Return the names of the fields in the dictionary form, in order."""
        ordered = sorted(fields(self), key=lambda field: bool(field.kw_only))
        return [field.name for field in ordered if "transient" not in field.metadata]

    def as_dict(self) -> dict[str, Any]:
        """Return the fields as plain numbers, strings, lists and dictionaries.

        Null distributions are left out, because they can be large.
        """
        return {"kind": type(self).__name__} | {k: _plain(vars(self)[k]) for k in self._kept()}

    def to_json(self, indent: int | None = 2) -> str:
        """Return :meth:`as_dict` as JSON.

        ``indent`` is the number of blanks for each level, None for one line.
        """
        return json.dumps(self.as_dict(), indent=indent, ensure_ascii=False)

    @classmethod
    def from_dict(cls, content: dict[str, Any]) -> Self:
        """Rebuild a record of this class from :meth:`as_dict`, without null distributions.

        ``content`` is the dictionary. ValueError for the dictionary of another class, TypeError for
        unknown or missing fields.
        """
        values = dict(content)
        kind = values.pop("kind", cls.__name__)
        if kind != cls.__name__:
            raise ValueError(f"this is the dictionary of a {kind}, not of a {cls.__name__}")
        return cls(**{name: _frozen(value) for name, value in values.items()})

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Rebuild a record of this class from the ``text`` that :meth:`to_json` returns.

        ValueError for another class or text that is no JSON, TypeError for unknown or missing
        fields.
        """
        return cls.from_dict(json.loads(text))

    def to_frame(self) -> polars.DataFrame | pandas.DataFrame:
        """Return the rows of the result as a data frame.

        A curve has a row a bin, a comparison of many models a row a pair, a gate a row a check; a
        test, an interval and other single answers are one row. Columns are plain values under the
        names of attributes. The columns of a class are always the same.

        Returns
        -------
        polars.DataFrame or pandas.DataFrame
            Polars if it is imported already, else pandas if it is installed, else Polars. Every
            other library takes the result by the Arrow stream interface: ``pl.DataFrame(result)``,
            ``pyarrow.table(result)``, ``pd.DataFrame.from_arrow(result)``.
        """
        return rendering.to_frame(self._frame_columns())

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        """Export :meth:`to_frame` as an Arrow stream, a PyCapsule.

        ``requested_schema`` is passed on to Polars.
        """
        return rendering.in_polars(self._frame_columns()).__arrow_c_stream__(requested_schema)

    def _frame_columns(self) -> dict[str, rendering.TypedColumn]:
        """Return the columns of the data frame, (type, values) by name.

        By default they are the fields of this record that are text or numbers, in one row.
        """
        return rendering.columns_of_records([self])

    def plot(
        self, ax: Axes | None = None, *, size: str = "paper", legend: bool = True, **options: object
    ) -> Drawing:
        """Draw it as a :class:`caltest.plots.Picture`; StatisticError where there is none.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; by default a new figure, one column (3.25 in) wide.
        size : {"paper", "screen", "talk"}, default "paper"
            Size of the figure and its words: a column of a paper, 6.5 in for a screen, or 8.5 in
            for slides. Words are 7 to 8, 11 to 12 or 15 to 18 points.
        legend : bool, default True
            Whether the key is drawn.
        **options
            Those of the function of :mod:`caltest.plots` that draws such results.
        """
        if not self.plotter:
            raise StatisticError(f"there is no picture of a {type(self).__name__}: print it")
        # Pictures know results; results know the names of their pictures only.
        module, _, function = self.plotter.rpartition(".")
        drawn = vars(import_module(f"caltest.plots.{module}"))[function](self, ax, **options)
        if size == "paper" and legend:
            return drawn
        return import_module("caltest.plots.chart").restyled(drawn, ax, size, legend)


@dataclass(frozen=True, kw_only=True, eq=False)
class Result(Record):
    """Base class of all results.

    Attributes
    ----------
    n, n_classes : int
        Number of observations, and of classes before the lens.
    event_name : str
        The user's name for the event or class that the lens shows, such as "died"; "" without one.
    n_resamples : int
        Number of replicates that the numbers rest on; 0 where nothing was simulated.
    seed : int or None
        Seed of the replicates, if known.
    ended : {"complete", "early", "interrupted"}
        Whether all replicates were drawn, or drawing ended by sequential stopping or Ctrl-C.
    notes : tuple of str
        Changes to the input, and other remarks.
    effective_n : float or None
        (Σ w)² / Σ w² for weighted rows.
    n_clusters : int or None
        Number of clusters.
    folds : FoldSummary or None
        How folds were aligned.
    series : HorizonSummary or None
        Dependence of overlapping outcomes that is allowed for.
    followup : FollowupSummary or None
        How rows were followed.
    copies : int
        Rows that repeat another more often than by chance; for several models the largest number.
    version : str
        Version of caltest.
    clusters_call : str
        The command that repeats it with the clusters that a doubt names; "" without one.
    """

    n: int
    n_classes: int
    event_name: str = ""
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
    clusters_call: str = ""

    #: What its text begins with.
    title: ClassVar[str] = ""
    #: The attribute that is the result as a single number, if one is.
    number: ClassVar[str | None] = None
    #: The attributes shown where it is the result of a subgroup, and the joint null hypothesis.
    of_subgroups: ClassVar[tuple[str, ...]] = ()
    of_all: ClassVar[str] = "calibrated in every subgroup"

    def __float__(self) -> float:
        if self.number is None:
            raise TypeError(f"a {type(self).__name__} is more than one number: name the field")
        return float(vars(self)[self.number])

    @property
    def recipe(self) -> str:
        """Line that says how the numbers of this result were computed, fit for a paper."""
        seed = [] if self.seed is None else [f"seed={self.seed}"]
        draws = [f"B={self.n_resamples}", *seed] if self.n_resamples else []
        data = [self._rows() + self._design, f"K={self.n_classes}", f"caltest {self.version}"]
        return " · ".join([*self._procedure(), *draws, *data])

    def _procedure(self) -> list[str]:
        """Return the first parts of the recipe of this result, which say how it was computed.

        They are strings such as statistic, lens and null distribution; by default the name of the
        class.
        """
        return [type(self).__name__]

    @property
    def _percent(self) -> str:
        """Level of intervals or bands as text, such as "95 %"."""
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

    def _tables(self) -> list[Columns]:
        """Return the tables of this result, each as columns by heading.

        By default there is one, which lists its fields.
        """
        return [listed_fields({f.name: vars(self)[f.name] for f in fields(self) if not f.kw_only})]

    def _in_words(self) -> list[str]:
        """Return the finding of this result in sentences, a list of strings; none by default."""
        return []

    def _facts(self) -> list[str]:
        """Return lines that replace the tables of this result in printed text; none by default."""
        return []

    def _appendix(self) -> list[str]:
        """Return lines that are printed below the finding: the results of subgroups, if any."""
        return [line for groups in self._groups() for line in ("", str(groups))]

    def _remarks(self) -> list[str]:
        """Return sentences on an interrupted run, on follow-up, and the notes of this result."""
        cut = "Interrupted: simulated numbers rest on the resamples drawn until then."
        followed = [] if self.followup is None else [f"follow-up   {self.followup}"]
        notes = [f"Note: {note}." for note in self.notes]
        return [*[cut] * (self.ended == "interrupted"), *followed, *notes, *self._calls()]

    def _calls(self) -> list[str]:
        """Return the line with the command that allows for clusters, in a list; [] without one."""
        return [CLUSTERS_CALL.format(self.clusters_call)] * bool(self.clusters_call)

    def _foot(self) -> list[str]:
        """Return the closing lines of the printed text: remarks, and how numbers were computed."""
        return [*(f"  {remark}" for remark in self._remarks()), "", f"  {self.recipe}"]

    def _groups(self) -> list[Subgroups]:
        """Return the results of subgroups of this result: a list of one Subgroups, or []."""
        groups: Subgroups | int | None = vars(self).get("subgroups")
        return [groups] if isinstance(groups, Record) else []

    def _all_tables(self) -> list[Columns]:
        """Return the tables of this result, then the table of its subgroups.

        Each maps headings to columns.
        """
        return [*self._tables(), *(groups.table for groups in self._groups())]

    def _content(self) -> Content:
        """Return the parts of this result from which every output format is made.

        A Content has its title, tables, sentences, and the recipe: a line that says how it was
        computed.
        """
        of_groups = [text for groups in self._groups() for text in groups.in_words()]
        sentences = [*self._in_words(), *of_groups, *self._remarks()]
        return Content(self.title, self._all_tables(), sentences, self.recipe)

    def __str__(self) -> str:
        lines, below = self._facts(), [*self._appendix(), *self._foot()]
        return rendering.text(self.title, lines or self._tables(), self._in_words(), below)

    def to_markdown(self) -> str:
        """Return the tables in Markdown, with the finding and a line on how it was computed."""
        return rendering.document_markdown(self._content())

    def to_latex(self) -> str:
        """Return the tables in LaTeX (booktabs), with a comment on how they were computed."""
        return rendering.document_latex(self._content())

    def _card(self) -> Card:
        """Return the notebook card of this result: verdict, headline and key numbers."""
        finding, *remarks = [*self._in_words(), ""]
        return Card(self.title or type(self).__name__, headline=finding, remarks=(*remarks[:-1],))

    def _repr_html_(self) -> str:
        """Return the notebook display as HTML.

        Verdict, key numbers, a picture and folded tables.
        """
        return rendering.element(self._card(), self._content())

    def _repr_markdown_(self) -> str:
        """Return the tables in Markdown, for Quarto and nbconvert."""
        return self.to_markdown()

    def _repr_latex_(self) -> str:
        """Return the tables in LaTeX (booktabs), for PDF documents made from notebooks."""
        return self.to_latex()


def _plain_names(value: object) -> object:
    if isinstance(value, tuple):  # also words within tuples lose their control characters
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


def _hashable(value: object) -> object:
    """Return a plain value in hashable form: tuples replace lists and dictionaries.

    ``value`` is a value of a dictionary form.
    """
    if isinstance(value, dict):
        return tuple((name, _hashable(v)) for name, v in value.items())
    return tuple(map(_hashable, value)) if isinstance(value, list) else value


def _frozen(value: object) -> object:
    if isinstance(value, list):
        return tuple(_frozen(v) for v in value)
    if isinstance(value, dict) and "kind" in value:
        return Record.kinds[value["kind"]].from_dict(value)
    return value


# ------------------------------------------------------------------------------
# How rows depend on each other: what was learnt of clusters, folds and forecasts far ahead.


#: z beyond which sizes of clusters, or weights, and residuals are not associated by chance.
ASSOCIATED = 3.29


#: Chance below which folds were not dealt at random, and z of the contrast that folds leave.
UNLIKELY, MIRRORED = 1e-3, -3.0


def degrees(
    kinds: Mapping[str, Sequence[float | None]], estimated: bool, of_items: bool = False
) -> str:
    """Return a phrase on the dependence λ within clusters, the chance that two rows go together.

    ``kinds`` maps the way in which they do (same label, or same correctness) to its λ for one or
    two columns of clusters, None where it is not known. ``estimated`` says that the λ are upper
    limits (at 95 %); ``of_items`` that they are computed for votes of items, and not looked for in
    steps of 0.1.
    """
    shares = []
    for kind, limits in kinds.items():
        values = [limit for limit in limits if limit is not None]
        words = " and ".join(f"{limit:.3g}" for limit in values)
        if estimated:
            smallest = "0" if of_items else "below 0.1"
            words = f"at most {words}" if any(values) else smallest
        shares += [f"{kind}: {words}"] if values else []
    two = "two votes of an item" if of_items else "two rows"
    return f"chance λ that {two} {', '.join(shares)}{' (95 % limits)' if estimated else ''}"


def _sizes(parts: ClusterSummary | FoldSummary) -> str:
    larger = f"–{parts.largest}" if parts.largest > parts.smallest else ""
    return f"{parts.count} of {parts.smallest}{larger} rows"


def size_note(z: float) -> str:
    """Return a sentence on residuals that change with the size of the cluster; "" if |z| ≤ 3.29.

    ``z`` is the statistic of their association.
    """
    if abs(z) <= ASSOCIATED:
        return ""
    return (
        f"residuals change with the size of the cluster (z = {z:+.1f}), while the test takes sizes "
        "as independent of outcomes: if rows end with the event or follow it, test one row of each "
        "cluster that no outcome has chosen, such as the first"
    )


@dataclass(frozen=True, eq=False)
class ClusterSummary(Record):
    """Clusters of a test, and the dependence that its null distribution allows for.

    Attributes
    ----------
    count : int
        Number of clusters.
    smallest, largest : int
        Number of rows of the smallest and of the largest cluster.
    effective : float
        Effective number of clusters: (Σ v_g)² / Σ v_g², with v_g the variance of the sum of cluster
        g.
    shared : float
        Expected number of clusters with a rarer label if clusters shared their label.
    dependence : float or None
        λ in [0, 1], the degree to which redrawn rows of a cluster share their label; None if not
        tried.
    correctness : float or None
        λ in [0, 1], the degree to which they share whether the likeliest label is right.
    in_parts : float
        Largest λ within a part of the rows.
    estimated : bool
        Whether λ is the upper 95 % limit estimated from the labels; else it was given.
    inflation : float
        κ ≥ 1, above 1 where labels of a cluster agree more than any redraw allows. Replicates of a
        statistic of degree d in the residuals are multiplied by κ^{d/2}.
    size_effect : float
        z statistic of the association of cluster size and residuals.
    inflation_applied : bool
        False where replicates could not be multiplied, because the statistic sees labels and the
        scheme was asked for by name. p-values are then too small where κ > 1.
    name : str
        Name of the cluster column, if there are two.
    beside : ClusterSummary or None
        Clusters of the second column.
    of_items : bool
        Whether clusters are items with several votes, so that λ is no multiple of 0.1.
    """

    count: int
    smallest: int
    largest: int
    effective: float
    shared: float
    dependence: float | None
    correctness: float | None
    in_parts: float
    estimated: bool
    inflation: float
    size_effect: float
    inflation_applied: bool = True
    name: str = ""
    beside: ClusterSummary | None = None
    of_items: bool = False

    @property
    def along(self) -> tuple[ClusterSummary, ...]:
        """Summaries of the columns of clusters along which rows may depend (λ > 0).

        They are this one, and that of the second column if there is one; this one alone if neither
        shows dependence.
        """
        if self.beside is None:
            return (self,)
        return tuple(each for each in (self, self.beside) if each.in_parts > 0.0) or (self,)

    @property
    def size_note(self) -> str:
        """Sentence on residuals that change with the size of the cluster; "" if |z| ≤ 3.29.

        Redrawn labels are as many as were observed. Where outcomes decide how many rows a cluster
        has, as when its rows end with the event, calibrated predictions are rejected too often:
        :class:`~caltest.MultiScale` rejected .54 of panels of 1000 clusters of 1 to 6 rows.
        A row drawn from each cluster is no remedy, because rows of small clusters are then drawn
        more often. The first row is one, as no outcome has chosen it.
        """
        return size_note(self.size_effect)

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on dependence within clusters, and on residuals that change with their size."""
        notes = [
            "rows of a cluster may depend on each other: noise floors and p-values allow for λ, "
            "the chance that two rows of a cluster go together"
        ]
        remedy = "test with null=OneRowPerCluster()"
        if self.beside is not None:
            remedy = "test rows of which no two share a cluster of either column"
        if self.inflation > 1.0 and self.inflation_applied:
            notes.append(
                "rows of a cluster agree more than shared outcomes explain: the null distribution "
                f"is widened by the factor {self.inflation**0.5:.2f} (√κ), which keeps the test "
                "valid and costs power"
            )
        if self.size_note:
            notes.append(self.size_note)
        if not self.inflation_applied:
            notes.append(
                "κ could not be applied to a statistic that sees labels: the p-value is too "
                f"small; {remedy}"
            )
        return tuple(notes)

    @property
    def largest_dependence(self) -> str:
        """Largest λ in words, of labels, of being right, or in parts of the rows; "at most 0.1".

        It is "below 0.1" where none was found, as λ is estimated in steps of 0.1.
        """
        largest = max(self.dependence or 0.0, self.correctness or 0.0, self.in_parts)
        if not self.estimated:
            return f"{largest:.3g}"
        return f"at most {largest:.3g}" if largest else "below 0.1"

    @property
    def in_sizes(self) -> str:
        """Number and sizes of clusters, and their effective number, in words."""
        sizes = _sizes(self).replace(" of ", " clusters of ", 1)
        return f"{sizes}, effective number {self.effective:.1f}"

    def __str__(self) -> str:
        columns = self.in_sizes
        if self.beside is not None:
            columns = f"{self.name}: {columns} · {self.beside.name}: {self.beside.in_sizes}"
        applied = "" if self.inflation_applied else " (not applied)"
        within = self.in_parts > max(self.dependence or 0.0, self.correctness or 0.0)
        parts = f" · λ up to {self.in_parts:g} where rows agree more than elsewhere" * within
        more = f" · inflation κ {self.inflation:.2f}{applied}" * (self.inflation > 1.0)
        return f"{columns} · {self.dependence_in_words}{parts}{more}"

    @property
    def dependence_in_words(self) -> str:
        """Phrase with λ, the chance that two rows of a cluster share their label, or correctness.

        It has a value for each of two columns of clusters.
        """
        along = [self] if self.beside is None else [self, self.beside]
        kinds = {
            "share their label": [each.dependence for each in along],
            "are right together": [each.correctness for each in along],
        }
        return degrees(kinds, self.estimated, self.of_items)


@dataclass(frozen=True, eq=False)
class FoldSummary(Record):
    """Folds of cross-validated predictions, and the effect of aligning their levels.

    With more than two classes, levels belong to the likeliest class.

    Attributes
    ----------
    count : int
        Number of folds.
    smallest, largest : int
        Number of rows of the smallest and of the largest fold.
    moved : float
        Largest absolute shift d_k of the mean prediction of fold k, in probability.
    contrast : float
        Σ w d r / √Σ w² d² v over rows, with weights w, the shift d of the row's fold, residuals r
        and their variances v; N(0, 1) if models do not know the labels.
    random : float
        p-value of folds dealt at random: the probability that they differ as much.
    memorised : bool
        Whether models memorise groups of rows, such as sites.
    within : bool
        Whether the test was computed within folds.
    """

    count: int
    smallest: int
    largest: int
    moved: float
    contrast: float
    random: float
    memorised: bool = False
    within: bool = False

    @property
    def share(self) -> float:
        """Share of the rows on which each fold's model was fitted, 1 − 1 / (number of folds)."""
        return 1.0 - 1.0 / self.count

    @property
    def _within(self) -> str:
        """Sentence on how a test within folds works, and on its power."""
        return (
            "models memorise groups of rows, such as sites (close predictions lie in one fold far "
            "more often than by chance): the statistic is computed within folds, without "
            "alignment, and its excess over the noise floor is divided by "
            f"{self.share**-0.5:.3g}. This has about half the power of fresh rows"
        )

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on cross-validated predictions.

        How folds are aligned, and what p-values mean.
        """
        aligned = (
            "folds are aligned, each shifted to the mean prediction of all rows: the test is about "
            "predictions that are too high or low overall and about their spread, not about "
            "differences between folds"
        )
        notes = [
            self._within if self.within else aligned,
            "models of other folds know these labels, which makes p-values approximate; they are "
            f"about models fitted on {100 * self.share:.0f} % of the rows, not one refitted on all",
        ]
        if self.memorised and not self.within:
            notes.append(
                "models memorise groups of rows, such as sites: errors of aligned folds exceed the "
                "errors of fresh rows; tests within folds avoid this, estimates do not"
            )
        if self.random < UNLIKELY:
            notes.append(
                f"folds differ more than rows dealt at random (p = {self.random:.0e}): if they are "
                "sites or periods, test each with by=; an error common to all is not tested"
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


@dataclass(frozen=True, eq=False)
class HorizonSummary(Record):
    """Forecasts several steps ahead, and the dependence that is allowed for between their outcomes.

    Attributes
    ----------
    horizon : int
        Number of steps that forecasts are ahead, ≥ 1.
    times : int
        Number of distinct times.
    dependence, correctness : float or None
        λ in [0, 1] as for clusters, of rows less than ``horizon`` times apart. None if not tried,
        or if blocks of four horizons are the units instead.
    estimated : bool
        Whether λ is the upper 95 % limit estimated from the labels.
    rows : int
        Number of rows; several may have one time.
    """

    horizon: int
    times: int
    dependence: float | None = None
    correctness: float | None = None
    estimated: bool = True
    rows: int = 0

    @property
    def notes(self) -> tuple[str, ...]:
        """One sentence on rows that share a time, or () if no rows do."""
        near = f" or less than {self.horizon} times apart" * (self.horizon > 1)
        note = f"rows have {self.times} times: rows of one time{near} are taken to depend"
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
    """Protocol of results that have a lower bound of an error, by which they are ranked.

    ``certain_error(alpha)`` returns (lower bound at level 1 − alpha, estimate).
    """

    def certain_error(self, alpha: float) -> tuple[float, float]: ...


def worst_of(tests: Sequence[Certain | None]) -> int:
    """Return the index of the test with the largest lower bound of its error.

    Bounds hold for all tests together (Bonferroni); equal bounds are ranked by the estimate. Tests
    that are None are skipped; at least one must not be. p-values do not rank: for many rows they
    differ by rounding only.
    """
    tested = {j: test for j, test in enumerate(tests) if test is not None}
    share = WORST_ALPHA / len(tested)
    return max(tested, key=lambda j: tested[j].certain_error(share))


@dataclass(frozen=True, eq=False)
class Subgroups(Record):
    """Results of the same question in every subgroup, and a test of whether they differ.

    Attributes
    ----------
    names : tuple of str
        The subgroups, sorted by name.
    counts : tuple of int
        Their numbers of rows.
    tests : tuple of Result or None
        Their results; None where a subgroup cannot be tested, which ``notes`` explain.
    adjusted : tuple of float or None
        p-values adjusted for the number of subgroups.
    pvalue : float
        Smallest adjusted p-value.
    adjust : {"Holm", "max-T"}
        How p-values were adjusted; by max-T if subgroups share rows.
    n : int
        Number of rows in any subgroup, each counted once.
    alike : tuple of float or None
        Adjusted p-values of "calibrated, or miscalibrated like the other rows"; None if not tested.
    notes : tuple of str
        Subgroups that could not be tested, and why.
    predicted, observed : tuple of float
        Mean prediction and event rate of each subgroup, in [0, 1].
    findings : tuple of Finding or None
        Findings of an audit.
    """

    names: tuple[str, ...]
    counts: tuple[int, ...]
    tests: tuple[Any, ...]
    adjusted: tuple[float | None, ...]
    pvalue: float
    adjust: str
    n: int
    alike: tuple[float | None, ...] = ()
    notes: tuple[str, ...] = ()
    predicted: tuple[float, ...] = ()
    observed: tuple[float, ...] = ()
    findings: tuple[Finding | None, ...] = ()
    plotter: ClassVar[str] = "forests.forest"

    @property
    def tested(self) -> list[Any]:
        """Results of the subgroups that could be tested, as a list."""
        return [test for test in self.tests if test is not None]

    @property
    def worst(self) -> int:
        """Index of the subgroup with the largest lower bound of its error."""
        return worst_of(self.tests)

    def worst_first(self) -> Subgroups:
        """Return the subgroups sorted by the lower bound of their error, largest first."""
        share = WORST_ALPHA / len(self.tested)
        errors = [(0.0, -1.0) if t is None else t.certain_error(share) for t in self.tests]
        order = sorted(range(len(errors)), key=lambda j: errors[j], reverse=True)
        return self._each(lambda values: tuple(values[j] for j in order))

    def first(self, most: int) -> Subgroups:
        """Return the first ``most`` subgroups."""
        return self._each(lambda values: values[:most])

    def _each(self, pick: Callable[[tuple[object, ...]], tuple[object, ...]]) -> Subgroups:
        lists = {name: vars(self)[name] for name in PER_SUBGROUP}
        picked: dict[str, Any] = {name: pick(values) for name, values in lists.items() if values}
        return replace(self, **picked)

    @property
    def alike_pvalue(self) -> float | None:
        """p-value of the test that all subgroups share one calibration curve; None if not tested.

        It is the smallest of the p-values ``alike`` of the subgroups.
        """
        return min((p for p in self.alike if p is not None), default=None)

    @property
    def recipe(self) -> str:
        """Line that says how the numbers were computed, with the adjustment for multiplicity.

        It names the number of subgroups, the adjustment, and the test that is used in each.
        """
        kind = f"{len(self.names)} subgroups, {self.adjust}"
        return f"{kind} · {replace(self.tested[0], n=self.n).recipe}"

    @property
    def table(self) -> Columns:
        """Columns by heading, with one row for each subgroup.

        They are its name, number of rows, the numbers of its result, the adjusted p-value, and
        where it was tested the p-value of being miscalibrated like all others.
        """
        columns = attributes(self.tests, {name: name for name in self.tested[0].of_subgroups})
        last = {"alike": self.alike} if self.alike else {}
        named = {"subgroup": self.names, "n": self.counts}
        return {**named, **columns, "adjusted p": self.adjusted, **last}

    @property
    def _shown_adjusted(self) -> list[str]:
        """Adjusted p-values of the subgroups as printed, with "≤" at the floor of a simulation.

        "–" stands for a subgroup that was not tested.
        """
        floors = [bool(getattr(test, "at_floor", False)) for test in self.tests]
        pairs = zip(self.adjusted, floors, strict=True)
        return ["–" if p is None else format_p(p, floor=floor) for p, floor in pairs]

    def _frame_columns(self) -> dict[str, rendering.TypedColumn]:
        tests = rendering.columns_of_records(t for t in self.tests if t is not None)
        places = iter(range(len(self.tests)))
        rows = [next(places) if t is not None else None for t in self.tests]
        spread = {
            name: (kind, [None if row is None else values[row] for row in rows])
            for name, (kind, values) in tests.items()
        }
        none: tuple[None, ...] = (None,) * len(self.names)
        numbers = ("adjusted", "alike", "predicted", "observed")
        return {
            **rendering.columns_of_arrays({"subgroup": self.names, "n": self.counts}),
            **spread,
            **{name: (float, vars(self)[name] or none) for name in numbers},
            "finding": (str, [word and str(word) for word in self.findings or none]),
        }

    @property
    def judged(self) -> Columns:
        """Columns by heading, with one row for each subgroup and the audit's finding on it.

        They are its name, number of rows, mean prediction, event rate, error, noise floor, adjusted
        p-value and finding, as printed.
        """
        means = list(zip(self.predicted, self.observed, strict=True))
        gap = max((abs(p - y) for p, y in means), default=0.0)  # one number of digits a column
        return {
            **{"subgroup": self.names, "n": self.counts},
            "predicted": [percent(p, p + gap) for p, _ in means],
            "observed": [percent(y, y + gap) for _, y in means],
            **attributes(self.tests, {"error": "shown_estimate", "noise floor": "shown_floor"}),
            **{"adjusted p": self._shown_adjusted, "finding": self.findings},
        }

    def in_words(self) -> list[str]:
        """Return the finding on all subgroups in sentences: p-values, then notes."""
        sentences = [f"{self.tested[0].of_all}: {p_is(self.pvalue)} ({self.adjust})"]
        if (p := self.alike_pvalue) is not None:
            sentences.append(f"calibrated alike: {p_is(p)} (residuals permuted)")
        return sentences + [f"Note: {note}." for note in self.remarks]

    @property
    def remarks(self) -> list[str]:
        """Notes to print: the first few, and the number of further ones."""
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


@dataclass(frozen=True, eq=False)
class FollowupSummary(Record):
    """Summary of censoring in results of :class:`caltest.Followup`.

    Attributes
    ----------
    horizon : float
        Time by which the event occurs, in the unit of the times; the longest where rows have their
        own.
    events, competing, free, unknown : int
        Rows with the event by the horizon, with a competing event, free of both at the horizon, and
        censored before it.
    strata : int
        Number of strata in which the censoring distribution was fitted.
    by_prediction : bool
        Whether strata are groups by rank of the prediction.
    heaviest : float
        Largest inverse-probability-of-censoring weight W.
    effective_n : float
        (Σ W)² / Σ W².
    share : float
        ``effective_n`` as a share of all rows, in [0, 1].
    lost : float
        1 − Σ W / n: share of the rows that no followed row represents.
    smallest : int
        Number of rows of the smallest stratum.
    shortest : float or None
        Shortest horizon, where rows have their own.
    left_out : int
        Rows that were left out because their horizon lies beyond the longest time.
    """

    horizon: float
    events: int
    competing: int
    free: int
    unknown: int
    strata: int
    by_prediction: bool
    heaviest: float
    effective_n: float
    share: float
    lost: float
    smallest: int
    shortest: float | None = None
    left_out: int = 0

    @property
    def known(self) -> int:
        """Number of rows with a known outcome at the horizon."""
        return self.events + self.competing + self.free

    def __str__(self) -> str:
        own = "by prediction" if self.shortest is None else "by horizon and prediction"
        by = own if self.by_prediction else "as given"
        horizon = f"time {self.horizon:g}"
        if self.shortest is not None:
            horizon = f"the horizon of each row ({self.shortest:g} to {self.horizon:g})"
        strata = f"{self.strata} strata {by}" if self.strata > 1 else "one stratum"
        competing = f"{self.competing} with a competing event, " * (self.competing > 0)
        return (
            f"by {horizon}: {self.events} with the event, {competing}{self.free} event-free, "
            f"{self.unknown} censored earlier. Weights on the others make up for these (inverse "
            f"probability of censoring, {strata}; largest weight {self.heaviest:.1f}, effective n "
            f"{self.effective_n:.0f})"
        )
