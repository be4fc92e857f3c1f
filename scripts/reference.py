"""Lists of docs/reference.md, with the public names that nobody has put into one of them.

The build of the documentation (docs/conf.py) lists such a name where ``reference.md`` has the
comment of its room, ``<!-- Further statistics: caltest.statistics -->``, below that heading.
``python scripts/reference.py`` prints these names.
"""

from __future__ import annotations

import re
from pathlib import Path

import caltest

ROOT = Path(__file__).parents[1]
PAGE = ROOT / "docs" / "reference.md"
#: A list of the page: its module and its names.
LIST = re.compile(
    r"\.\. currentmodule:: ([\w.]+)\n\n\.\. autosummary::\n   :toctree: api\n"
    r"   :nosignatures:\n\n"
    r"((?:   \w+\n)+)"
)
#: A comment in whose place further names of a room stand.
PLACE = re.compile(r"<!-- (.+): caltest\.(\w+) -->\n")


def lists(text: str) -> list[tuple[str, list[str]]]:
    """Return (module, names) of the lists of the page ``text``, in their order."""
    return [(module, names.split()) for module, names in LIST.findall(text)]


def exports() -> list[tuple[str, str]]:
    """Return (room, name) of all public names; the room is a module such as "data.lenses"."""
    return caltest._imports(Path(caltest.__file__).with_suffix(".pyi"))


def others(text: str, exported: list[tuple[str, str]]) -> dict[str, list[str]]:
    """Return the names in no list of the page ``text``, by the room that exports them."""
    listed = {name for module, names in lists(text) if module == "caltest" for name in names}
    found: dict[str, list[str]] = {}
    for room, name in exported:
        if name not in listed:
            found.setdefault(room, []).append(name)
    return found


def section(heading: str, names: list[str], folder: str = "api") -> str:
    """Return a section of the page, with a list whose pages are in ``folder``; "" for no names."""
    if not names:
        return ""
    return (
        f"### {heading}\n\n```{{eval-rst}}\n.. currentmodule:: caltest\n\n.. autosummary::\n"
        f"   :toctree: {folder}\n   :nosignatures:\n\n"
        + "".join(f"   {name}\n" for name in names)
        + "```\n"
    )


def completed(text: str, exported: list[tuple[str, str]] | None = None) -> str:
    """Return the page ``text`` with all names of the rooms, ``exported`` in place of the package's.

    Comments of rooms without further names are taken out.
    """
    more = others(text, exports() if exported is None else exported)
    return PLACE.sub(lambda place: section(place[1], more.get(place[2], [])), text)


if __name__ == "__main__":
    for room, names in others(PAGE.read_text(encoding="utf-8"), exports()).items():
        if f": caltest.{room} -->" in PAGE.read_text(encoding="utf-8"):
            print(f"{room}: {', '.join(names)}")
