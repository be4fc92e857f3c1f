"""One name a thing: terms.toml has the terms, and these tests find other names in docs and help."""

import re
import tomllib
from pathlib import Path

import click
import pytest

from caltest import cli

ROOT = Path(__file__).parents[2]
TERMS = tomllib.loads((Path(__file__).parent / "terms.toml").read_text(encoding="utf-8"))
MADE = {"_build", "api", "jupyter_execute", "_templates"}
PAGES = sorted(
    path
    for path in [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    if not MADE & set(path.parts) and path.parts[-2:] != ("gallery", "index.md")
)
OTHER_NAMES = [(term["say"], name) for term in TERMS["term"] for name in term["not"]]


def prose(page: Path) -> list[tuple[int, str]]:
    """Return (number, line) outside code blocks, without inline code."""
    fence, lines = "", []
    for number, line in enumerate(page.read_text(encoding="utf-8").splitlines(), 1):
        mark = re.match(r"(`{3,}|:{3,})(.*)", line)
        if mark and not fence and not mark[2].startswith(("{tab", "{gloss", "{figure")):
            fence = mark[1]
        elif mark and mark[1] == fence and not mark[2]:
            fence = ""
        elif not fence:
            lines.append((number, re.sub(r"`[^`]*`", "`code`", line)))
    return lines


def allowed(page: Path, pattern: str) -> bool:
    """Return whether terms.toml lets a page keep a name, with its reason."""
    where = page.relative_to(ROOT).as_posix()
    return any(
        where == entry["page"] and pattern in entry["names"] for entry in TERMS.get("allowed", [])
    )


@pytest.mark.parametrize(("term", "pattern"), OTHER_NAMES, ids=[name for _, name in OTHER_NAMES])
def test_pages_use_the_terms(term, pattern):
    found = [
        f"{page.relative_to(ROOT)}:{number}: say {term!r}: {line.strip()}"
        for page in PAGES
        if not allowed(page, pattern)
        for number, line in prose(page)
        if re.search(pattern, line, re.IGNORECASE)
    ]
    assert not found, "\n".join(found)


@pytest.mark.parametrize("habit", TERMS["habit"], ids=[habit["name"] for habit in TERMS["habit"]])
def test_habits_of_language_do_not_come_back(habit):
    """Each habit has the number of places that may remain; a page that loses one lowers it."""
    found = [
        f"{page.relative_to(ROOT)}:{number}: {line.strip()}"
        for page in PAGES
        for number, line in prose(page)
        for _ in re.finditer(habit["pattern"], line)
    ]
    assert len(found) <= habit["docs"], "\n".join(found)


def helps() -> list[tuple[str, str]]:
    """Return (command, help) of every command, help of hidden options included."""
    texts = []
    for name in cli.COMMANDS:
        command = cli.cli.get_command(None, name)
        texts.append((name, command.help or ""))
        texts += [
            (f"{name} {option.opts[0]}", option.help or "")
            for option in command.params
            if isinstance(option, click.Option)
        ]
    return texts


def test_help_uses_the_terms():
    found = [
        f"{where}: say {term!r}: {text}"
        for where, text in helps()
        for term, pattern in OTHER_NAMES
        if re.search(pattern, text, re.IGNORECASE)
    ]
    assert not found, "\n".join(found)


def test_every_exception_is_still_needed():
    for entry in TERMS.get("allowed", []):
        page, reason = ROOT / entry["page"], entry["reason"]
        text = "\n".join(line for _, line in prose(page))
        assert reason
        for name in entry["names"]:
            assert re.search(name, text, re.IGNORECASE), f"{entry['page']} no longer has {name}"


def test_headings_say_what_a_reader_would_search_for():
    """No heading of a page is a riddle that begins or ends without its subject."""
    riddle = r"^#+ (?:What is in|What must not|What leaving|Where\?|Decide$|Nulls$|Which\?)"
    found = [
        f"{page.relative_to(ROOT)}:{number}: {line}"
        for page in PAGES
        for number, line in prose(page)
        if re.match(riddle, line)
    ]
    assert not found, "\n".join(found)
