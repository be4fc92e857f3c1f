"""Draw the gallery: ``python docs/gallery/make.py``.

Runs every example, saves its picture, and writes the page that shows both.
"""

from __future__ import annotations

import ast
import runpy
from pathlib import Path

HERE = Path(__file__).parent
SECTIONS = {
    "Reliability diagrams": (
        *("deviation", "simultaneous", "classical", "confidence", "truth"),
        *("ranks", "classes", "rare"),
    ),
    "Calibration curves without bins": ("isotonic", "smooth", "band", "cox"),
    "Simplex plots of whole probability vectors": (
        "triangle",
        "fine",
        "tree",
        "sixpoints",
        "tetrahedron",
    ),
    "Null distributions, intervals and decompositions": (
        "null",
        "bins",
        "audit",
        "interval",
        "decomposition",
        "decision_curve",
    ),
    "Comparing models": ("comparison", "difference"),
    "Subgroups, segments and sites": ("forest", "subgroups", "where", "sites"),
    "Monitoring over time": ("monitor", "forecasters", "revisions"),
}
#: Words that a reader would search for, by example.
SEARCH = {
    "deviation": "reliability diagram, residual, observed − predicted, consistency bars",
    "simultaneous": "simultaneous consistency bars, multiple bins",
    "classical": "reliability diagram, calibration plot, diagonal",
    "confidence": "reliability diagram, accuracy against confidence, top-label, overconfidence",
    "truth": "true calibration curve, simulation",
    "ranks": "equal-mass bins, quantiles",
    "classes": "class-wise reliability, one-vs-rest, multiclass",
    "rare": "rare events, log-odds axis, low probabilities",
    "isotonic": "CORP, isotonic regression, PAV",
    "smooth": "smooth calibration curve, loess, ICI",
    "band": "confidence band, calibration belt, monotone",
    "cox": "calibration slope and intercept, logistic recalibration",
    "triangle": "simplex, three classes, ternary plot",
    "fine": "simplex with many cells, ternary plot",
    "tree": "data-dependent bins, simplex, VarianceTree",
    "sixpoints": "canonical calibration, counterexample",
    "tetrahedron": "four classes, simplex",
    "null": "null distribution, noise floor, p-value",
    "bins": "number of bins, sensitivity of the ECE",
    "audit": "p-values, multiple testing",
    "interval": "confidence interval of the ECE",
    "decomposition": "Brier score decomposition, reliability, resolution",
    "decision_curve": "decision curve, net benefit, utility",
    "comparison": "compare models, forest of errors",
    "difference": "difference of two models, paired",
    "forest": "forest plot, subgroups, fairness",
    "subgroups": "reliability diagram by subgroup",
    "where": "segments, slices, heatmap of miscalibration",
    "sites": "meta-analysis, hospitals, prediction interval",
    "monitor": "monitoring, e-value, alarm, drift",
    "forecasters": "compare forecasters sequentially, confidence sequence",
    "revisions": "revised forecasts, martingale",
}
HEAD = """# Gallery of reliability diagrams and other pictures

Every function for pictures takes `ax=`, returns a picture, and leaves the settings of matplotlib
alone. Pictures are legible in one column (3.25 inches, 7 pt) and in grey; the recipe at the foot
says how the numbers were computed (`recipe=False` omits it). `picture.save("name.pdf")` writes a
file; `picture.figure` is the matplotlib figure. On the command line:
`caltest plot FILE --kind classical -o name.pdf`.
"""


def main() -> None:
    """Draw all pictures and write the page."""
    pictures = HERE / "pictures"
    pictures.mkdir(exist_ok=True)
    page = [HEAD, thumbnails()]
    for section, names in SECTIONS.items():
        page.append(f"## {section}\n")
        for name in names:
            example = HERE / "examples" / f"{name}.py"
            runpy.run_path(str(example))["picture"].save(pictures / f"{name}.png")
            page.append(entry(example))
    (HERE / "index.md").write_text("\n".join(page), encoding="utf-8")


def thumbnails() -> str:
    """Return a grid of small pictures, each a link to its entry, with search words below."""
    cards = [
        f":::{{grid-item-card}} {title(HERE / 'examples' / f'{name}.py')}\n"
        f":link: gallery-{name}\n:link-type: ref\n:img-top: pictures/{name}.png\n\n"
        f"{SEARCH[name]}\n:::\n"
        for names in SECTIONS.values()
        for name in names
    ]
    return (
        "::::{grid} 2 3 4 4\n:gutter: 2\n:class-container: thumbnails\n\n"
        + "\n".join(cards)
        + "::::\n"
    )


def title(example: Path) -> str:
    """Return the first line of the docstring of an example."""
    words = ast.get_docstring(ast.parse(example.read_text(encoding="utf-8"))) or ""
    return words.partition("\n")[0]


def entry(example: Path) -> str:
    """Return title, words, picture and code of one example."""
    source = example.read_text(encoding="utf-8")
    words = ast.get_docstring(ast.parse(source)) or ""
    heading, _, text = words.partition("\n\n")
    code = source.split('"""', 2)[2].strip()
    return (
        f"(gallery-{example.stem})=\n### {heading}\n\n{text}\n\n"
        f"*{SEARCH[example.stem]}*\n\n"
        f"```{{image}} pictures/{example.stem}.png\n:alt: {heading}\n:width: 420px\n```\n\n"
        f"```python\n{code}\n```\n"
    )


if __name__ == "__main__":
    main()
