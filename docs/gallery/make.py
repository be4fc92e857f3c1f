"""Draw the gallery: ``python docs/gallery/make.py``.

Runs every example, saves its picture, and writes the page that shows both.
"""

from __future__ import annotations

import ast
import runpy
from pathlib import Path

HERE = Path(__file__).parent
SECTIONS = {
    "Predictions against outcomes": (
        *("deviation", "simultaneous", "classical", "confidence", "truth"),
        *("ranks", "classes", "rare"),
    ),
    "Curves without bins": ("isotonic", "smooth", "band", "cox"),
    "Whole vectors": ("triangle", "fine", "tree", "sixpoints", "tetrahedron"),
    "Tests and numbers": ("null", "bins", "audit", "interval", "decomposition", "decision_curve"),
    "Models compared": ("comparison", "difference"),
    "Subgroups, segments and sites": ("forest", "subgroups", "where", "sites"),
    "While the data come in": ("monitor", "forecasters", "revisions"),
}
HEAD = """# Gallery

Every picture takes `ax=`, returns what it drew, leaves matplotlib's settings alone, reads well in
one column (3.25 inches, 7 pt) and in grey, has one key, and says at its foot how it was made;
`recipe=False` leaves that out. `picture.save("name.pdf")` writes a file, `picture.figure` is
matplotlib's. On the command line: `caltest plot FILE --kind classical -o name.pdf`.
"""


def main() -> None:
    """Draw all pictures and write the page."""
    pictures = HERE / "pictures"
    pictures.mkdir(exist_ok=True)
    page = [HEAD]
    for section, names in SECTIONS.items():
        page.append(f"## {section}\n")
        for name in names:
            example = HERE / "examples" / f"{name}.py"
            runpy.run_path(str(example))["picture"].save(pictures / f"{name}.png")
            page.append(entry(example))
    (HERE / "index.md").write_text("\n".join(page), encoding="utf-8")


def entry(example: Path) -> str:
    """Return title, words, picture and code of one example."""
    source = example.read_text(encoding="utf-8")
    words = ast.get_docstring(ast.parse(source)) or ""
    title, _, text = words.partition("\n\n")
    code = source.split('"""', 2)[2].strip()
    return (
        f"### {title}\n\n{text}\n\n"
        f"```{{image}} pictures/{example.stem}.png\n:alt: {title}\n:width: 420px\n```\n\n"
        f"```python\n{code}\n```\n"
    )


if __name__ == "__main__":
    main()
