"""Draw the picture of the README on light and on dark ground.

``python scripts/readme_picture.py`` writes docs/reliability.svg and docs/reliability-dark.svg.
"""

from __future__ import annotations

import re
from pathlib import Path

import caltest as ct

DOCS = Path(__file__).parents[1] / "docs"

#: Colours on light ground, and what stands for them on dark ground.
DARK = {
    "#ffffff": "#0d1117",
    "#000000": "#e6edf3",
    "#111111": "#e6edf3",
    "#555555": "#9198a1",
    "#9a9a9a": "#7d8590",
    "#a9cce8": "#2f5f87",
    "#c8281e": "#ff7b72",
}


def darkened(svg: str) -> str:
    """Return a picture with its colours exchanged; text without a colour of its own is light."""
    svg = re.sub("#[0-9a-f]{6}", lambda found: DARK.get(found[0], found[0]), svg)
    return svg.replace('<style type="text/css">', '<style type="text/css">text{fill:#e6edf3}', 1)


def main() -> None:
    """Write both files."""
    svg = ct.reliability_curve(ct.examples.digits("overfit")).plot().to_svg()
    svg = "\n".join(line.rstrip() for line in svg.splitlines()) + "\n"
    (DOCS / "reliability.svg").write_text(svg, encoding="utf-8")
    (DOCS / "reliability-dark.svg").write_text(darkened(svg), encoding="utf-8")


if __name__ == "__main__":
    main()
