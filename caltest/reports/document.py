"""The report as a value and its four forms.

:class:`Report` is a list of :class:`Section` with a first screen; what only a report computes is
in :mod:`caltest.reports.measures`.
"""

from __future__ import annotations

import platform
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape
from pathlib import Path
from typing import Any, ClassVar, Literal, TypeVar

import numpy as np

from caltest._base.arrays import FloatArray
from caltest._base.saving import write_file
from caltest.errors import StatisticError
from caltest.plots.chart import GREY, Style
from caltest.reports.elements import (
    CHIP_SHAPES,
    MINUS,
    NB,
    FirstScreen,
    PictureWords,
    part_forest,
    points,
    share,
    small_scale,
    switch,
)
from caltest.reports.measures import WORDING, DataSummary, Measures
from caltest.results import (
    AuditReport,
    AuditVerdict,
    BandTest,
    CalibrationTestResult,
    ConfidenceIntervalResult,
    CORPDecomposition,
    Record,
    ReliabilityCurve,
    ReliabilityFit,
    Result,
    format_p,
    format_range,
    format_value,
)
from caltest.results import rendering as written
from caltest.results.audits import HEADLINES
from caltest.results.base import Drawing
from caltest.results.figures import SPREAD_EDGES
from caltest.results.rendering import GLUED, Columns, p_is, percent, spread_of

#: How a table and a text are written in each language.
Writers = tuple[Callable[[Columns], str], Callable[[str], str]]


FORMS: dict[str, Writers] = {
    ".html": (written.html, escape),
    ".md": (written.markdown, written.markdown_text),
    ".tex": (written.latex, written.latex_text),
}


#: Sentences of a page, in which no line is broken between a number and its unit.
TEXT_OF_PAGE = re.compile(r"<(?:p|li|dd|small|blockquote)\b[^>]*>[^<]+")


#: Parts that are open at once, and rows of a table that is not folded.
MOST_OPEN, MOST_ROWS = 5, 16


#: Marks of statements in templates, where those of Jinja2 mean something in the language.
TEX: dict[str, Any] = {"variable_start_string": "<<", "variable_end_string": ">>"}


TEX |= {"block_start_string": "<%", "block_end_string": "%>"}


#: What is shown of answers whose tables hold more than a reader asks for.
FIELDS_SHOWN: dict[type[Result], tuple[str, ...]] = {
    BandTest: ("at_least", "at_most", "crosses"),
    ConfidenceIntervalResult: ("estimate", "low", "high", "null_mean", "corrected"),
}


def tables_of(result: Result) -> list[Columns]:
    """Return the tables of a result, a list; a table maps headings to the values of the rows.

    A curve without bins has none, [], because its picture shows every point of it.
    """
    if isinstance(result, ReliabilityFit):
        return []
    names = FIELDS_SHOWN.get(type(result))
    return result._all_tables() if names is None else [{n: [vars(result)[n]] for n in names}]


def sentences(result: Result) -> list[str]:
    """Return the sentences of a result, a list, except those already at the head of the page."""
    if isinstance(result, AuditReport):
        return [*result._below, *result.details]
    return result._in_words()


def _folded(table: str) -> str:
    """Return an HTML table that scrolls, in a closed ``<details>`` element above 16 rows.

    ``table`` is the table as HTML.
    """
    rows = table.count("<tr>") - 1
    scroll = f'<div class="scroll" tabindex="0">{table}</div>'
    if rows <= MOST_ROWS:
        return scroll
    return f"<details><summary>Table of {rows} rows</summary>{scroll}</details>"


def _smooth(sections: tuple[Section, ...]) -> tuple[FloatArray, FloatArray] | None:
    """Return (predictions, rates) of the smooth curve in these sections, (L,) each, or None.

    L is the number of points of the curve. ``sections`` are parts of a report, each with results;
    None where no result is a lowess curve.
    """
    fits = (r for s in sections for r in s.results if isinstance(r, ReliabilityFit))
    fit = next((fit for fit in fits if fit.fit == "lowess"), None)
    return None if fit is None else (fit.predicted, fit.fitted)


class _Done(str):
    """String that is already HTML, Markdown or LaTeX, so that templates do not escape it again."""


def _plotted(result: Record) -> Drawing:
    return result.plot(recipe=False)


def _fit_plot(fit: ReliabilityFit) -> Drawing:
    """Draw a fitted curve, on log-odds axes where more than half of the predictions lie at one end.

    An end is the lowest or the highest twentieth of [0, 1]. ``fit`` has the predictions, and the
    picture is returned.
    """
    low, high = (fit.spread[at].sum() for at in (SPREAD_EDGES[:-1] < 0.05, SPREAD_EDGES[1:] > 0.95))
    axis: Literal["probability", "log-odds"] = "probability"
    if max(low, high) > 0.5 * fit.spread.sum():
        axis = "log-odds"
    return fit.plot(axis=axis, recipe=False)


def _attributes(curve: ReliabilityCurve) -> Drawing:
    """Draw the attributes diagram of weather services (Hsu & Murphy 1986).

    It adds the climatological frequency and the region where forecasts have positive Brier skill to
    the reliability curve, ``curve``. The picture is returned.
    """
    picture = curve.plot(style="classical", recipe=False)
    mean = float(np.average(curve.observed, weights=curve.count))
    thin = Style(color=GREY, linewidth=0.8, linestyle=(0, (1, 1.5)), zorder=1)
    picture.ax.axhline(mean, **thin)
    picture.ax.axvline(mean, **thin)
    picture.ax.plot([0.0, 1.0], [0.5 * mean, 0.5 * (1.0 + mean)], marker="", **thin)
    return picture


def _subgroup_plot(test: CalibrationTestResult) -> Drawing:
    assert test.subgroups is not None
    return _plotted(test.subgroups.first(MOST_GROUPS))


#: Subgroups that fit into a picture.
MOST_GROUPS = 25


#: What draws a part.
DRAWN: dict[str, Callable[[Any], Drawing]] = {
    **dict.fromkeys(("curve", "cox", "sites", "decomposition"), _plotted),
    **dict.fromkeys(("band", "smooth"), _fit_plot),
    **dict.fromkeys(("murphy", "where", "recalibration", "costs"), _plotted),
    **{"attributes": _attributes, "groups": _subgroup_plot},
}


@dataclass(frozen=True, eq=False)
class Section(Record):
    """A part of a report: a title, an explanation, and the results that it shows.

    Attributes
    ----------
    key, title : str
        Name for programs, and heading.
    meaning : str
        Explanation in a sentence or two.
    results : tuple of Result
        The results; each has its own tables and sentences.
    """

    key: str
    title: str
    meaning: str
    results: tuple[Result, ...]

    @property
    def pictured(self) -> bool:
        """True if the last of the results of this section has a picture."""
        return self.key in DRAWN and bool(self.results[-1].plotter)

    @property
    def picture(self) -> Drawing:
        """Picture of the last of the results of this section, drawn anew.

        Only for a section that is :attr:`pictured`.
        """
        return DRAWN[self.key](self.results[-1])

    @property
    def svg(self) -> str:
        """Picture of this section as an SVG element, a string.

        Its identifiers carry the key of the section, so that several pictures fit on one page.
        """
        svg = self.picture.to_svg()
        svg = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
        for mark in (' id="', '"#', "url(#"):
            svg = svg.replace(mark, f"{mark}{self.key}-")
        return svg


@dataclass(frozen=True, eq=False)
class Report(Result):
    """Result of :func:`caltest.report`; ``save`` writes it as a page.

    Attributes
    ----------
    name : str
        Name of the model.
    profile : {"clinical", "ml", "weather", "llm"}
        The readers for whom parts and words were chosen.
    audit : AuditReport
        The verdict and its reasons.
    summary : tuple of str
        The finding, its size and its uncertainty, in sentences.
    sections : tuple of Section
        The parts, each with its results, in the order of the profile.
    unexamined : tuple of str
        Questions that were not examined, each with the reason.
    paragraph : str
        A paragraph for a paper.
    screen : FirstScreen
        Verdict, main finding, key numbers, recommendation and provenance.
    vocabulary : tuple of str
        The user's words: both axis titles, the participle for the outcome ("died"), the plural for
        observations ("patients"), and the noun for a subgroup ("hospital").
    n, n_classes, n_resamples, seed, ended, notes, version
        As for every :class:`Result`.
    """

    name: str
    profile: str
    audit: AuditReport
    summary: tuple[str, ...]
    sections: tuple[Section, ...]
    unexamined: tuple[str, ...]
    paragraph: str
    screen: FirstScreen
    vocabulary: tuple[str, ...] = ()
    endings: ClassVar[tuple[str, ...]] = (*FORMS, ".json")
    title: ClassVar[str] = "Calibration report"

    @property
    def verdict(self) -> AuditVerdict:
        """Verdict of the audit."""
        return self.audit.verdict

    @property
    def headline(self) -> str:
        """The verdict in the words of a heading."""
        return HEADLINES[self.verdict][0]

    @property
    def tone(self) -> str:
        """The colour of the verdict: red, green, or yellow where the data cannot tell."""
        return HEADLINES[self.verdict][1].split()[-1]

    @property
    def remarks(self) -> tuple[str, ...]:
        """Notes on how the input was read or changed, and on an interrupted simulation."""
        return tuple(self._remarks())

    @property
    def lead(self) -> Section | None:
        """The section whose picture stands beside the verdict; None if no section has one."""
        key = WORDING["profiles"][self.profile]["picture"]
        pictured = [section for section in self.sections if section.pictured]
        return next((s for s in pictured if s.key == key), pictured[0] if pictured else None)

    @property
    def opened(self) -> tuple[Section, ...]:
        """The sections that a page shows at once, five at most; it folds the others."""
        keys = WORDING["profiles"][self.profile]["open"]
        return tuple(section for section in self.sections if section.key in keys)[:MOST_OPEN]

    @property
    def folded(self) -> tuple[Section, ...]:
        """Sections that a page shows closed, except the one pictured at the head of the page."""
        others = [section for section in self.sections if section not in self.opened]
        return tuple(s for s in others if s is not self.lead or any(map(tables_of, s.results)))

    @property
    def replaced(self) -> tuple[str, ...]:
        """Keys of the sections left out because the table of subgroups or classes repeats them."""
        if not self.screen.parts:
            return ()
        return ("classes",) if self.parts_heading == "Calibration by class" else ("groups",)

    @property
    def alike(self) -> str:
        """Sentence with the p-value of the test that all subgroups share one calibration curve.

        It is "" without subgroups.
        """
        groups = next((row.groups for row in self.audit.rows if row.groups is not None), None)
        if groups is None or groups.alike_pvalue is None:
            return ""
        told = "Test that all subgroups share one calibration curve: "
        return f"{told}{p_is(groups.alike_pvalue)}."

    @property
    def pictured_first(self) -> str:
        """The key of the section whose picture stands on the first screen.

        "" without any picture.
        """
        if self.curve is not None:
            return "curve"
        return "" if self.lead is None else self.lead.key

    @property
    def footer(self) -> str:
        """Footer of a printed page: title and provenance, safe inside a style sheet."""
        words = f"{self.title} · {self.screen.provenance[0]}"
        return "".join(c for c in words if c.isalnum() or c in " .,:·-_()")

    @property
    def chip(self) -> str:
        """Icon of the verdict as SVG."""
        return CHIP_SHAPES[self.screen.tone]

    @property
    def shapes(self) -> dict[str, str]:
        """Icons of all verdicts as SVG, by tone: "bad", "ok" and "ask"."""
        return CHIP_SHAPES

    @property
    def scales(self) -> list[str]:
        """Interval plots below the key numbers, one SVG element for each of them."""
        return [small_scale(number) for number in self.screen.numbers]

    @property
    def parts_rows(self) -> list[dict[str, str]]:
        """Rows of the table of subgroups or classes: formatted cells by name, one dict for each.

        Cells are name, n, predicted, observed, difference (observed − predicted), interval, p
        (adjusted), finding and tone ("bad", "ok" or "ask"). The cell "svg" holds the interval of
        the difference, to be drawn on :attr:`parts_axis`. [] without subgroups or classes.
        """
        parts = self.screen.parts
        drawn = part_forest(parts, self.audit.tolerance or 0.0)[1:]
        return [
            {
                "name": p.name,
                "n": str(p.n),
                "predicted": share(p.predicted),
                "observed": share(p.observed),
                "svg": svg,
                "difference": points(p.difference),
                "interval": f"{points(p.low)[:-3]} to {points(p.high)[:-3]}",
                "p": format_p(p.adjusted) if p.adjusted == p.adjusted else "–",
                "finding": p.finding,
                "tone": p.tone,
            }
            for p, svg in zip(parts, drawn, strict=True)
        ]

    @property
    def parts_counted(self) -> bool:
        """True if the table of parts is of subgroups, False if it is of classes.

        Subgroups have sizes of their own; classes share all rows.
        """
        return "class" not in self.parts_heading

    @property
    def parts_axis(self) -> str:
        """Horizontal axis, in percentage points, of the intervals in :attr:`parts_rows`, as SVG."""
        return part_forest(self.screen.parts, self.audit.tolerance or 0.0)[0]

    @property
    def curve(self) -> ReliabilityCurve | None:
        """The reliability curve of the first screen; None if the report has none."""
        return first_of_kind(ReliabilityCurve, self.sections)

    @property
    def views(self) -> str:
        """The reliability diagram in three views as HTML; "" without a curve."""
        if self.curve is None:
            return ""
        return switch(self.curve, self._words_of_picture(), _smooth(self.sections))

    @property
    def caption(self) -> str:
        """Caption of the reliability diagram: bins, colours, and the number of points outside bars.

        Only for a report that has a reliability curve.
        """
        assert self.curve is not None
        curve, words = self.curve, self._words_of_picture()
        outside, total = int(curve.outside.sum()), len(curve.count)
        rows = words.rows.capitalize()
        if "Quantile" in curve.bins:
            binned = f"{rows} in {total} bins of equal numbers"
            if words.odds:
                binned += ", as one of equal width would hold more than half of them"
        else:
            binned = f"{rows} in {total} bins of equal width"
        said = [f"{binned}.", f"Red, filled: outside its bar ({outside} of {total})."]
        said += ["Blue: smooth curve."] * (_smooth(self.sections) is not None)
        return " ".join([*said, "Grey strip: all predictions."])

    def _words_of_picture(self) -> PictureWords:
        x, y, event, rows, *_ = (*self.vocabulary, "", "", "", "")
        assert self.curve is not None
        return PictureWords(
            x=x or "Predicted probability", y=y or "Observed event rate", event=event or "observed",
            rows=rows or "observations", tolerance=self.audit.tolerance or 0.0,
            odds="Quantile" in self.curve.bins and self.followup is None,
        )  # fmt: skip

    @property
    def parts_heading(self) -> str:
        """Heading of the table of subgroups or classes, such as "Calibration by hospital"."""
        groups = (*self.vocabulary, "", "", "", "", "")[4]
        if self.screen.numbers and any("class" in n.label for n in self.screen.numbers):
            return "Calibration by class"
        return f"Calibration by {groups or 'subgroup'}"

    @property
    def minus(self) -> str:
        """Minus sign (U+2212), for templates."""
        return MINUS

    @property
    def recipes(self) -> tuple[str, ...]:
        """Methods behind the numbers, one line for each distinct method.

        Settings that all methods share stand in the last line, which begins with "all:".
        """
        answers: list[Result] = [row.test for row in self.audit.rows]
        answers += [r for s in self.sections for r in s.results if not isinstance(r, AuditReport)]
        parts = [answer.recipe.split(" · ") for answer in answers]
        shared = [part for part in parts[0] if all(part in others for others in parts)]
        lines = [" · ".join(p for p in each if p not in shared) for each in parts]
        return (*dict.fromkeys(lines), f"all: {' · '.join(shared)}")

    @property
    def reproduce(self) -> str:
        """Line with the versions, settings and seed that reproduce the numbers."""
        import numba
        import scipy

        seed = "none" if self.seed is None else self.seed
        return (
            f"caltest {self.version}, Python {platform.python_version()}, NumPy {np.__version__}, "
            f"SciPy {scipy.__version__}, numba {numba.__version__}; profile {self.profile}, "
            f"n_resamples {self.n_resamples}, seed {seed}. Each line says how a number was made, "
            "the last one what all have in common."
        )

    def _procedure(self) -> list[str]:
        return [f"{self.profile} report"]

    def _frame_columns(self) -> dict[str, written.TypedColumn]:
        return self.audit._frame_columns()

    def __str__(self) -> str:
        lines = [f"{self.title}: {self.name}", f"Verdict: {self.headline}", *self.summary]
        left_out = [f"- {reason}" for reason in self.unexamined]
        lines += ["", self.paragraph, "", "Not examined:", *left_out]
        return "\n".join([*lines, *self._foot()])

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{escape(self.to_html())}" width="100%" height="900"></iframe>'

    def _repr_latex_(self) -> str:
        return self.audit.to_latex()  # tables: a document cannot stand within another

    def to_html(self) -> str:
        """Return a page that needs nothing else: pictures and style are within."""
        return self._in(".html")

    def to_markdown(self) -> str:
        """Return the report without pictures, for GitHub and other readers of Markdown."""
        return self._in(".md")

    def to_latex(self) -> str:
        """Return the report as a LaTeX document; it needs booktabs.

        Pictures are files beside it, which :meth:`save` writes; missing ones are left out.
        """
        return self._in(".tex")

    def save(self, path: str | Path) -> None:
        """Write the report as .html, .md, .tex (with pictures beside it, as .pdf) or .json.

        Raises
        ------
        StatisticError
            For another ending.
        ImportError
            Without Jinja2, which the extra ``caltest[report]`` brings; .json needs nothing.
        """
        kind = Path(path).suffix.lower()
        if kind not in self.endings:
            raise StatisticError(f"a report is saved as .html, .md, .tex or .json, not as {path}")
        text = self.to_json() + "\n" if kind == ".json" else self._in(kind)
        write_file(path, text)
        if kind == ".tex":
            for section in self.sections:
                if section.pictured:
                    section.picture.save(Path(path).with_name(f"{section.key}.pdf"))

    def _in(self, kind: str) -> str:
        """Return the report as text of the form ``kind``: ".html", ".md" or ".tex".

        It fills the template of that form. Every value is escaped unless it is a _Done. ImportError
        without Jinja2.
        """
        try:
            from jinja2 import Environment, PackageLoader, StrictUndefined
        except ImportError:
            raise ImportError("a report needs Jinja2: pip install 'caltest[report]'") from None
        table, text = FORMS[kind]
        environment = Environment(
            loader=PackageLoader("caltest.reports"),
            undefined=StrictUndefined,
            trim_blocks=True,
            lstrip_blocks=True,
            finalize=lambda value: value if isinstance(value, _Done) else text(str(value)),
            **(TEX if kind == ".tex" else {}),
        )
        folds = _folded if kind == ".html" else str
        environment.filters["tables"] = lambda r: [_Done(folds(table(t))) for t in tables_of(r)]
        environment.filters["sentences"] = sentences
        environment.filters["done"] = _Done
        filled = environment.get_template(f"report{kind}").render(report=self)
        if kind == ".html":
            filled = TEXT_OF_PAGE.sub(lambda text: GLUED.sub(NB, text[0]), filled)
        return filled.rstrip("\n") + "\n"


ResultT = TypeVar("ResultT", bound=Result)


def first_of_kind(kind: type[ResultT], sections: Sequence[Section]) -> ResultT | None:
    """Return the first result of the class ``kind`` in any of the sections, or None.

    ``sections`` are parts of a report, each with results.
    """
    results = (r for section in sections for r in section.results)
    return next((r for r in results if isinstance(r, kind)), None)


def paragraph(profile: str, audit: AuditReport, sections: Sequence[Section]) -> str:
    """Return a paragraph on methods and results, ready to paste into a paper.

    ``profile`` selects the wording: "ml", "clinical" (with the measures that TRIPOD+AI asks for),
    "weather" or "llm". ``audit`` and the results of ``sections``, the parts of the report, give the
    numbers; one of the results has to be the DataSummary, with numbers of rows and events.
    """
    words, data = WORDING["profiles"][profile], first_of_kind(DataSummary, sections)
    assert data is not None
    outcome = percent(data.mean_outcome, data.mean_prediction)
    events = f"{data.events} {words['events']} ({data.event}, {outcome}; "
    if data.followup is not None:  # the count leaves out events after rows were censored
        events = (
            f"{data.events} {words['events']} observed ({data.event}; estimated risk {outcome}, "
        )
    sentences = [
        f"Calibration was assessed on {data.n} {words['rows']} with {events}"
        f"mean of the {words['predictions']} {percent(data.mean_prediction, data.mean_outcome)})."
    ]
    if (measures := first_of_kind(Measures, sections)) is not None:
        values = {name: measures.find(name) for name in WORDING["paragraph"]}
        told = WORDING["paragraph"] | (WORDING["paragraph_of_top"] if data.n_classes > 2 else {})
        parts = [
            told[name].format(_with_interval(triple, measures.level))
            for name, triple in values.items()
            if triple is not None
        ]
        listed = ", ".join(parts)
        sentences += [f"{listed[0].upper()}{listed[1:]}."] if parts else []
    if (size := first_of_kind(ConfidenceIntervalResult, sections)) is not None:
        triple = size.estimate, size.low or 0.0, size.high or 1.0
        error = _with_interval(triple, size.level)
        equal = "numbers" if "Quantile" in size.statistic else "width"
        bins = f"{size.n_cells or 'all'} bins of equal {equal}"
        sentences.append(f"The expected calibration error over {bins} was {error}.")
    if (score := first_of_kind(CORPDecomposition, sections)) is not None:
        of_top = " of the confidence" * (data.n_classes > 2)
        sentences.append(
            f"The Brier score{of_top} consists of miscalibration "
            f"{format_value(score.miscalibration)}, discrimination "
            f"{format_value(score.discrimination)} and uncertainty "
            f"{format_value(score.uncertainty)} (isotonic regression)."
        )
    rejected = sum(row.verdict.rejects for row in audit.rows)
    sentences.append(
        f"{rejected} of {len(audit.rows)} questions about calibration, tested at a joint level of "
        f"{audit.alpha:g}, found miscalibration (smallest "
        f"{p_is(format_p(min(row.adjusted for row in audit.rows), audit.alpha), 'adjusted p')})."
    )
    band, seed = first_of_kind(BandTest, sections), audit.rows[0].test.seed
    sentences += [] if band is None else band._in_words()
    seeded = "" if seed is None else f", seed {seed}"
    return " ".join([*sentences, f"Computed with caltest {audit.version}{seeded}."])


def _with_interval(triple: tuple[float, float, float], level: float) -> str:
    value, low, high = triple
    interval = f" ({100 * level:g} % interval {format_range(low, high)})" if low == low else ""
    return format_value(value, spread_of(low, high)) + interval
