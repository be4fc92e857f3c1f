"""Draw the rooms of the package (docs/rooms.svg) from the import contract and docstrings.

``python scripts/rooms.py`` writes the picture, ``--check`` fails if it is out of date. A room may
import from the rooms below it only; rooms on one line do not import one another.
"""

from __future__ import annotations

import argparse
import ast
import sys
import tomllib
from html import escape
from pathlib import Path

ROOT = Path(__file__).parents[1]
PICTURE = ROOT / "docs" / "rooms.svg"
LINE, WIDTH, NAME = 30, 960, 390  # height of a layer, width of the picture, width of the names


def layers() -> list[list[tuple[str, str]]]:
    """Return the layers of the contract, top first, each a list of (name, sentence)."""
    contract = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["importlinter"]
    named = [layer.split(" | ") for layer in contract["contracts"][0]["layers"]]
    return [[(name, sentence(name)) for name in layer] for layer in named]


def sentence(name: str) -> str:
    """Return the first line of the docstring of a module or folder of the package."""
    path = ROOT / "caltest" / name
    file = path / "__init__.py" if path.is_dir() else path.with_suffix(".py")
    return (ast.get_docstring(ast.parse(file.read_text())) or "").partition("\n")[0]


def drawn() -> str:
    """Return the picture as SVG: a line a layer, dark on light in both modes of a browser."""
    rows, y = [], 10
    for layer in layers()[1:]:  # not __main__
        names = " · ".join(
            f"{name}/" if (ROOT / "caltest" / name).is_dir() else name for name, _ in layer
        )
        said = (
            layer[0][1]
            if len(layer) == 1
            else "; ".join(
                text.rstrip(".") for name, text in layer if (ROOT / "caltest" / name).is_dir()
            )
        )
        if len(layer) > 1:
            said = (said + ", and doors to other packages.") if said else "Errors and the version."
        rows.append(
            f'<rect x="10" y="{y}" width="{WIDTH - 20}" height="{LINE - 4}" rx="3"/>'
            f'<text class="name" x="20" y="{y + 18}">{escape(names)}</text>'
            f'<text x="{NAME + 10}" y="{y + 18}">{escape(said)}</text>'
        )
        y += LINE
    style = (
        "rect{fill:#eef2f7;stroke:#9fb0c3}text{font:12px sans-serif;fill:#223}"
        ".name{font-family:monospace;font-weight:bold;font-size:11px}"
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y + 6}" role="img">'
        "<title>The rooms of caltest; each imports from the rooms below it only</title>"
        f'<style>{style}</style><rect width="{WIDTH}" height="{y + 6}" style="fill:#fff"/>'
        + "\n".join(rows)
        + "</svg>\n"
    )


def main() -> None:
    """Write the picture, or check it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--check", action="store_true")
    if parser.parse_args().check:
        if not PICTURE.exists() or PICTURE.read_text() != drawn():
            sys.exit("docs/rooms.svg is out of date: python scripts/rooms.py")
    else:
        PICTURE.write_text(drawn())


if __name__ == "__main__":
    main()
