"""What was found in sentences, and a paragraph to paste in the words of a field."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar

from caltest.reports.answers import WORDING, DataSummary, Measures
from caltest.reports.document import Section
from caltest.results import (
    AuditReport,
    BandTest,
    ConfidenceIntervalResult,
    CORPDecomposition,
    Result,
    format_p,
    format_range,
    format_value,
)
from caltest.results.numbers import percent, spread_of

Kind = TypeVar("Kind", bound=Result)


def first(kind: type[Kind], sections: Sequence[Section]) -> Kind | None:
    """Return the first result of a kind."""
    results = (r for section in sections for r in section.results)
    return next((r for r in results if isinstance(r, kind)), None)


def _with_interval(size: ConfidenceIntervalResult) -> str:
    return _value((size.estimate, size.low or 0.0, size.high or 1.0), size.level)


def paragraph(profile: str, audit: AuditReport, sections: Sequence[Section]) -> str:
    """Return a paragraph for a paper."""
    words = WORDING["profiles"][profile]
    data, measures = first(DataSummary, sections), first(Measures, sections)
    assert data is not None
    sentences = [
        f"Calibration was assessed on {data.n} {words['rows']} with {data.events} "
        f"{words['events']} ({data.event}, {percent(data.mean_outcome, data.mean_prediction)}; "
        f"mean of the {words['predictions']} {percent(data.mean_prediction, data.mean_outcome)})."
    ]
    templates = WORDING["paragraph"]
    values = {} if measures is None else {name: measures.find(name) for name in templates}
    level = 0.95 if measures is None else measures.level
    parts = [
        templates[name].format(_value(v, level)) for name, v in values.items() if v is not None
    ]
    if parts:
        parts[0] = parts[0][0].upper() + parts[0][1:]
        sentences.append(", ".join(parts) + ".")
    size, score = first(ConfidenceIntervalResult, sections), first(CORPDecomposition, sections)
    if size is not None:
        sentences.append(f"The expected calibration error over 15 bins was {_with_interval(size)}.")
    if score is not None:
        sentences.append(
            f"The Brier score consists of miscalibration {format_value(score.miscalibration)}, "
            f"discrimination {format_value(score.discrimination)} and uncertainty "
            f"{format_value(score.uncertainty)} "
            "(isotonic regression)."
        )
    smallest = min(row.adjusted for row in audit.rows)
    rejected = sum(row.verdict.rejects for row in audit.rows)
    sentences.append(
        f"Of {len(audit.rows)} questions about calibration, tested at a level of {audit.alpha:g} "
        f"for all together, {rejected} found miscalibration (smallest adjusted p "
        f"{format_p(smallest)})."
    )
    band = first(BandTest, sections)
    sentences += [] if band is None else band._in_words()
    seed = "" if audit.rows[0].test.seed is None else f", seed {audit.rows[0].test.seed}"
    return " ".join([*sentences, f"Computed with caltest {audit.version}{seed}."])


def _value(triple: tuple[float, float, float], level: float) -> str:
    value, low, high = triple
    interval = f" ({100 * level:g} % interval {format_range(low, high)})" if low == low else ""
    return format_value(value, spread_of(low, high)) + interval
