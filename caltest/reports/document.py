"""The report as a value, and its four forms."""

from __future__ import annotations

import platform
import re
from collections.abc import Callable, Sequence
from html import escape
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np

from caltest.errors import StatisticError
from caltest.plots import Picture
from caltest.plots.canvas import GREY, Style
from caltest.reports.answers import WORDING, DataSummary, Measures
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
from caltest.results import tables as written
from caltest.results.audit import HEADLINES, TOGETHER
from caltest.results.fields import described, entry
from caltest.results.numbers import percent, spread_of
from caltest.results.tables import Columns

#: How a table and a text are written in each language.
Writers = tuple[Callable[[Columns], str], Callable[[str], str]]
FORMS: dict[str, Writers] = {
    ".html": (written.html, escape),
    ".md": (written.markdown, written.markdown_text),
    ".tex": (written.latex, written.latex_text),
}
#: Parts that are open at once, and rows of a table that is not folded.
MOST_OPEN, MOST_ROWS = 5, 16
#: Marks of statements in templates, where those of Jinja2 mean something in the language.
TEX: dict[str, Any] = {"variable_start_string": "<<", "variable_end_string": ">>"}
TEX |= {"block_start_string": "<%", "block_end_string": "%>"}
#: What is shown of answers whose tables hold more than a reader asks for.
SHOWN: dict[type[Result], tuple[str, ...]] = {
    BandTest: ("at_least", "at_most", "crosses"),
    ConfidenceIntervalResult: ("estimate", "low", "high", "null_mean", "corrected"),
}


def tables_of(result: Result) -> list[Columns]:
    """Return the tables of an answer; of a curve without bins its picture says more."""
    if isinstance(result, ReliabilityFit):
        return []
    names = SHOWN.get(type(result))
    return result._all_tables() if names is None else [{n: [vars(result)[n]] for n in names}]


def sentences(result: Result) -> list[str]:
    """Return the words of an answer; those of an audit that are not at the head of the page."""
    if isinstance(result, AuditReport):
        return [TOGETHER, *result.details]
    return result._in_words()


def _folded(table: str) -> str:
    """Return a table of a page; one of many rows is opened by whoever wants it."""
    rows = table.count("<tr>") - 1
    scroll = f'<div class="scroll" tabindex="0">{table}</div>'
    if rows <= MOST_ROWS:
        return scroll
    return f"<details><summary>Table of {rows} rows</summary>{scroll}</details>"


class _Done(str):
    """Text that is written in the language of a document already."""


def _plotted(result: Record) -> Picture:
    return result.plot(recipe=False)


def _attributes(curve: ReliabilityCurve) -> Picture:
    """Draw the diagram of the weather services: the climate, and where forecasts begin to help."""
    picture = curve.plot(style="classical", recipe=False)
    mean = float(np.average(curve.observed, weights=curve.count))
    thin = Style(color=GREY, linewidth=0.8, linestyle=(0, (1, 1.5)), zorder=1)
    picture.ax.axhline(mean, **thin)
    picture.ax.axvline(mean, **thin)
    picture.ax.plot([0.0, 1.0], [0.5 * mean, 0.5 * (1.0 + mean)], marker="", **thin)
    return picture


def _groups(test: CalibrationTestResult) -> Picture:
    assert test.subgroups is not None
    return _plotted(test.subgroups.first(MOST_GROUPS))


#: Subgroups that fit into a picture.
MOST_GROUPS = 25
#: What draws a part.
DRAWN: dict[str, Callable[[Any], Picture]] = {
    **dict.fromkeys(("curve", "band", "smooth", "cox", "sites", "decomposition"), _plotted),
    **dict.fromkeys(("murphy", "where", "recalibration"), _plotted),
    **{"attributes": _attributes, "groups": _groups},
}


@described()
class Section(Record):
    """A part of a report: what it means, and the answers that it shows."""

    key: str = entry("What it is, for programs and for people.")
    title: str
    meaning: str = entry("How to read it, in a sentence or two.")
    results: tuple[Result, ...] = entry("The answers, which have tables and words of their own.")

    @property
    def pictured(self) -> bool:
        """Whether the last of the answers is drawn."""
        return self.key in DRAWN

    @property
    def picture(self) -> Picture:
        """The last of the answers, drawn."""
        return DRAWN[self.key](self.results[-1])

    @property
    def svg(self) -> str:
        """The picture as an element of a page, whose names are its own."""
        svg = self.picture.to_svg()
        svg = re.sub(r"<metadata>.*?</metadata>", "", svg[svg.index("<svg") :], flags=re.DOTALL)
        for mark in (' id="', '"#', "url(#"):
            svg = svg.replace(mark, f"{mark}{self.key}-")
        return svg


@described(title="Calibration report", procedure="{0.profile} report")
class Report(Result):
    """The answer of :func:`caltest.report`; ``save`` writes it as a page."""

    name: str = entry("What the report is about.")
    profile: str = entry("For whom it is.", '{"clinical", "ml", "weather", "llm"}')
    audit: AuditReport = entry("The verdict, and its reasons.")
    summary: tuple[str, ...] = entry(
        "What was found, how large it is and how sure that is, in sentences."
    )
    sections: tuple[Section, ...] = entry(
        "The parts, each with its results, in the order of the profile."
    )
    unexamined: tuple[str, ...] = entry("What was not examined, and why.")
    paragraph: str = entry("What to paste into a paper.")
    endings: ClassVar[tuple[str, ...]] = (*FORMS, ".json")

    @property
    def verdict(self) -> AuditVerdict:
        """What the audit says."""
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
        """What was done to the rows on the way in, and whether the simulation was interrupted."""
        *remarks, _, _ = self._foot()
        return tuple(remark.strip() for remark in remarks)

    @property
    def lead(self) -> Section | None:
        """The part whose picture stands beside the verdict."""
        key = WORDING["profiles"][self.profile]["picture"]
        pictured = [section for section in self.sections if section.pictured]
        return next((s for s in pictured if s.key == key), pictured[0] if pictured else None)

    @property
    def opened(self) -> tuple[Section, ...]:
        """The parts that a page shows at once, five at most; it folds the others."""
        keys = WORDING["profiles"][self.profile]["open"]
        return tuple(section for section in self.sections if section.key in keys)[:MOST_OPEN]

    @property
    def folded(self) -> tuple[Section, ...]:
        """The other parts that say more than the picture at the head of the page."""
        others = [section for section in self.sections if section not in self.opened]
        return tuple(s for s in others if s is not self.lead or any(map(tables_of, s.results)))

    @property
    def recipes(self) -> tuple[str, ...]:
        """How every number was made, one line for each kind, and at last what all share."""
        answers: list[Result] = [row.test for row in self.audit.rows]
        answers += [r for s in self.sections for r in s.results if not isinstance(r, AuditReport)]
        parts = [answer.recipe.split(" · ") for answer in answers]
        shared = [part for part in parts[0] if all(part in others for others in parts)]
        lines = [" · ".join(p for p in each if p not in shared) for each in parts]
        return (*dict.fromkeys(lines), f"all: {' · '.join(shared)}")

    @property
    def reproduce(self) -> str:
        """With which versions, settings and seed the numbers come again."""
        import numba
        import scipy

        seed = "none" if self.seed is None else self.seed
        return (
            f"caltest {self.version}, Python {platform.python_version()}, NumPy {np.__version__}, "
            f"SciPy {scipy.__version__}, numba {numba.__version__}; profile {self.profile}, "
            f"n_resamples {self.n_resamples}, seed {seed}. Each line says how a number was made, "
            "the last one what all have in common."
        )

    def __str__(self) -> str:
        lines = [f"{self.title}: {self.name}", f"Verdict: {self.headline}", *self.summary]
        left_out = [f"- {reason}" for reason in self.unexamined]
        lines += ["", self.paragraph, "", "Not examined:", *left_out]
        return "\n".join([*lines, *self._foot()])

    def _repr_html_(self) -> str:
        return f'<iframe srcdoc="{escape(self.to_html())}" width="100%" height="900"></iframe>'

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
        Path(path).write_text(text, encoding="utf-8")
        if kind == ".tex":
            for section in self.sections:
                if section.pictured:
                    section.picture.save(Path(path).with_name(f"{section.key}.pdf"))

    def _in(self, kind: str) -> str:
        """Fill a template, in which everything is escaped but what is marked as done."""
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
        return filled.rstrip("\n") + "\n"


Kind = TypeVar("Kind", bound=Result)


def first(kind: type[Kind], sections: Sequence[Section]) -> Kind | None:
    """Return the first result of a kind."""
    results = (r for section in sections for r in section.results)
    return next((r for r in results if isinstance(r, kind)), None)


def paragraph(profile: str, audit: AuditReport, sections: Sequence[Section]) -> str:
    """Return a paragraph for a paper."""
    words, data = WORDING["profiles"][profile], first(DataSummary, sections)
    assert data is not None
    sentences = [
        f"Calibration was assessed on {data.n} {words['rows']} with {data.events} "
        f"{words['events']} ({data.event}, {percent(data.mean_outcome, data.mean_prediction)}; "
        f"mean of the {words['predictions']} {percent(data.mean_prediction, data.mean_outcome)})."
    ]
    if (measures := first(Measures, sections)) is not None:
        values = {name: measures.find(name) for name in WORDING["paragraph"]}
        parts = [
            WORDING["paragraph"][name].format(_with_interval(triple, measures.level))
            for name, triple in values.items()
            if triple is not None
        ]
        listed = ", ".join(parts)
        sentences += [f"{listed[0].upper()}{listed[1:]}."] if parts else []
    if (size := first(ConfidenceIntervalResult, sections)) is not None:
        triple = size.estimate, size.low or 0.0, size.high or 1.0
        error = _with_interval(triple, size.level)
        sentences.append(f"The expected calibration error over 15 bins was {error}.")
    if (score := first(CORPDecomposition, sections)) is not None:
        sentences.append(
            f"The Brier score consists of miscalibration {format_value(score.miscalibration)}, "
            f"discrimination {format_value(score.discrimination)} and uncertainty "
            f"{format_value(score.uncertainty)} (isotonic regression)."
        )
    rejected = sum(row.verdict.rejects for row in audit.rows)
    sentences.append(
        f"Of {len(audit.rows)} questions about calibration, tested at a level of {audit.alpha:g} "
        f"for all together, {rejected} found miscalibration (smallest adjusted p "
        f"{format_p(min(row.adjusted for row in audit.rows), audit.alpha)})."
    )
    band, seed = first(BandTest, sections), audit.rows[0].test.seed
    sentences += [] if band is None else band._in_words()
    seeded = "" if seed is None else f", seed {seed}"
    return " ".join([*sentences, f"Computed with caltest {audit.version}{seeded}."])


def _with_interval(triple: tuple[float, float, float], level: float) -> str:
    value, low, high = triple
    interval = f" ({100 * level:g} % interval {format_range(low, high)})" if low == low else ""
    return format_value(value, spread_of(low, high)) + interval
