"""Draw the flow chart and the concept map of the documentation as SVG.

``python scripts/figures.py`` writes docs/which_test.svg and docs/concept_map.svg; ``--check`` fails
if one is out of date. Both read in dark mode and use one font size, so that they stay legible when
the page is narrow.
"""

from __future__ import annotations

import argparse
import sys
from html import escape
from pathlib import Path

DOCS = Path(__file__).parents[1] / "docs"
STYLE = """
svg{font-family:system-ui,sans-serif;font-size:15px;color-scheme:light dark}
rect{fill:#eef2f7;stroke:#6b7f95;rx:5px}.function rect{fill:#fff4dd;stroke:#a87b1f}
text{fill:#1b2430;text-anchor:middle}.function text{font-family:ui-monospace,monospace}
path{fill:none;stroke:#6b7f95;stroke-width:1.5;marker-end:url(#head)}
.word{font-size:13px;fill:#41505f;text-anchor:start}
@media (prefers-color-scheme:dark){rect{fill:#243040;stroke:#8ea2b8}
.function rect{fill:#3d3215;stroke:#d3a53a}text{fill:#e8edf3}path{stroke:#8ea2b8}
.word{fill:#b9c5d2}}
"""

#: A question, what is answered "yes" with, and where that leads.
QUESTIONS = (
    ("Will you look at the data repeatedly?", "Monitor"),
    ("Two or more models to compare?", "compare, compare_models"),
    ("Only counts by rating grade?", "grade_tests"),
    ("Should a release pass or fail?", "gate"),
    ("Must the error be shown to be small?", "equivalence_test"),
    ("Do you ask how large the error is?", "confidence_interval"),
    ("Wrong for whom: segments not yet named?", "segment_search"),
    ("Wrong for which class?", "worst_class"),
    ("One kind of error, named before?", "calibration_test (table below)"),
)


def box(x: float, y: float, width: float, lines: str, kind: str = "") -> str:
    """Return a box of lines, centred at x, with its top at y; a line is 19 units high."""
    texts = "".join(
        f'<text x="{x}" y="{y + 22 + 19 * i}">{escape(line)}</text>'
        for i, line in enumerate(lines.split("\n"))
    )
    height = 14 + 19 * (lines.count("\n") + 1)
    left = x - width / 2
    rect = f'<rect x="{left}" y="{y}" width="{width}" height="{height}"/>'
    return f'<g class="{kind}">{rect}{texts}</g>'


def picture(width: int, height: int, title: str, parts: list[str]) -> str:
    """Return an SVG document with a title, arrow heads and the style of both figures."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img">',
            f"<title>{escape(title)}</title><style>{STYLE}</style>",
            '<defs><marker id="head" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7"'
            ' markerHeight="7" orient="auto"><path d="M0 0 8 4 0 8z" style="fill:#6b7f95;'
            'stroke:none;marker-end:none"/></marker></defs>',
            *parts,
            "</svg>\n",
        ]
    )


def flow_chart() -> str:
    """Return the questions from top to bottom; "yes" leads right to a function, "no" down."""
    left, right, step = 190, 580, 62
    parts = []
    for i, (question, function) in enumerate(QUESTIONS):
        y = 10 + step * i
        parts.append(box(left, y, 350, question))
        parts.append(box(right, y, 280, function, "function"))
        parts.append(f'<path d="M365 {y + 16.5}H440"/>')
        parts.append(f'<text class="word" x="385" y="{y + 11}">yes</text>')
        parts.append(f'<path d="M{left} {y + 33}V{y + step}"/>')
        parts.append(f'<text class="word" x="{left + 8}" y="{y + 52}">no</text>')
    last = 10 + step * len(QUESTIONS)
    parts.append(box(left, last, 350, "audit: all the usual tests, adjusted", "function"))
    return picture(730, last + 45, "Flow chart: from a question to a function of caltest", parts)


def concept_map() -> str:
    """Return how predictions become a verdict: boxes are terms of the glossary."""
    middle = 365
    boxes = (
        (190, 10, 330, "predictions and labels\n(observations, or tallies of them)", ""),
        (570, 10, 300, "design: weights, clusters,\nsubgroups, folds, horizon", ""),
        (middle, 105, 470, "lens: top-label, class-wise or canonical", ""),
        (190, 190, 330, "statistic\nECE, CoxScore, Kuiper, SKCE, …", ""),
        (570, 190, 300, "null distribution\nexact, Monte Carlo, limit", ""),
        (190, 290, 330, "estimate\n(debiased estimate, interval)", ""),
        (570, 290, 300, "noise floor and\nconsistency bars", ""),
        (190, 390, 330, "tolerance: how large an error\nis acceptable", ""),
        (570, 390, 300, "p-value, adjusted p,\ne-value", ""),
        (middle, 490, 470, "verdict: miscalibrated · calibrated · cannot tell", ""),
    )
    arrows = (
        "M190 62 290 104", "M570 62 460 104", "M290 138 190 189", "M440 138 570 189",
        "M355 216H419", "M190 242V289", "M570 242V289", "M190 342V389", "M570 342V389",
        "M355 316H419", "M190 442 300 489", "M570 442 440 489",
    )  # fmt: skip
    words = ((369, 210, "redraw"), (360, 310, "compare"))
    parts = [f'<path d="{arrow}"/>' for arrow in arrows]
    parts += [box(*one) for one in boxes]
    parts += [f'<text class="word" x="{x}" y="{y}">{word}</text>' for x, y, word in words]
    return picture(730, 535, "Concept map: from predictions to a verdict", parts)


FIGURES = {"which_test.svg": flow_chart, "concept_map.svg": concept_map}


def main() -> None:
    """Write the figures, or check that they are up to date."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; fail if out of date")
    check = parser.parse_args().check
    for name, draw in FIGURES.items():
        path = DOCS / name
        if not check:
            path.write_text(draw(), encoding="utf-8")
        elif not path.exists() or path.read_text(encoding="utf-8") != draw():
            sys.exit(f"{path} is out of date; run: python scripts/figures.py")


if __name__ == "__main__":
    main()
