"""Print anew what the pages show: outputs of examples in docs/, and of commands in two pages.

``python scripts/outputs.py [PAGE …]`` runs the ``{doctest}`` blocks of each page in one namespace,
as Sphinx does, and writes the printed output in place of the old one. The commands that
``docs/start.md``, ``docs/commands.md`` and ``README.md`` show are run as well. Read the
difference before it is committed: an output that changed although no wording did is a mistake.
"""

from __future__ import annotations

import contextlib
import doctest
import io
import os
import re
import shlex
import sys
import tempfile
import traceback
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

BLOCK = re.compile(
    r"^```\{(doctest|testcode|testsetup)\}[^\n]*\n(.*?)^```", re.DOTALL | re.MULTILINE
)
SESSION = re.compile(r"```\n\$ (caltest [^\n]*)\n(?!```)(.*?)```", re.DOTALL)
#: What stands for the version in a recipe, with ELLIPSIS.
UNVERSIONED = "caltest ..."
#: Pages of docs/ that show commands with their output.
SESSIONS = ("start.md", "commands.md")
#: Letters of a line in these commands.
WIDTH = 104


@contextlib.contextmanager
def in_folder(folder: Path) -> Iterator[None]:
    """Work in another folder for a while."""
    before = Path.cwd()
    os.chdir(folder)
    try:
        yield
    finally:
        os.chdir(before)


def run_block(block: str, names: dict[str, Any]) -> str:
    """Return a block of examples with the outputs that they print now."""
    examples = doctest.DocTestParser().get_examples(block)
    loose = doctest.ELLIPSIS if re.search(r"^:options:.*\+ELLIPSIS", block, re.MULTILINE) else 0
    lines, shift = block.splitlines(keepends=True), 0
    for example in examples:
        out = io.StringIO()
        with contextlib.redirect_stdout(out):
            try:
                exec(compile(example.source, "<example>", "single"), names)
            except Exception as error:  # shown as doctest shows it
                out.write("Traceback (most recent call last):\n    ...\n")
                out.write("".join(traceback.format_exception_only(error)))
        got = out.getvalue()
        if UNVERSIONED in example.want:
            got = re.sub(r"caltest \d+\.\d+\.\d+", UNVERSIONED, got)
        same = doctest.OutputChecker().check_output(
            example.want, got, loose | sum(flag for flag, on in example.options.items() if on)
        )
        if same or example.exc_msg is not None:
            continue
        first = example.lineno + len(example.source.splitlines()) + shift
        old = len(example.want.splitlines())
        new = got.replace("\n\n", "\n<BLANKLINE>\n").replace("\n\n", "\n<BLANKLINE>\n")
        new = f"<BLANKLINE>{new}" if new.startswith("\n") else new
        inserted = new.splitlines(keepends=True)
        lines[first : first + old] = inserted
        shift += len(inserted) - old
    return "".join(lines)


def examples_anew(text: str) -> str:
    """Return a page whose examples print what they print now."""
    names: dict[str, Any] = {"__name__": "__main__"}
    parts, end = list[str](), 0
    for match in BLOCK.finditer(text):
        parts.append(text[end : match.start(2)])
        if match[1] == "doctest":
            parts.append(run_block(match[2], names))
        else:
            exec(compile(match[2], "<page>", "exec"), names)
            parts.append(match[2])
        end = match.end(2)
    return "".join([*parts, text[end:]])


def printed(words: list[str], width: int) -> str:
    """Return what a command prints on a terminal of this width, without colours."""
    from caltest import cli

    os.environ["COLUMNS"] = str(width)
    out, err = io.StringIO(), io.StringIO()
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
            cli.main(words)
    except SystemExit:
        pass
    finally:
        del os.environ["COLUMNS"]
    return "\n".join(line.rstrip() for line in out.getvalue().splitlines()).strip()


def sessions_anew(text: str) -> str:
    """Return the page of first steps with what its commands print now."""
    import caltest as ct

    data = ct.examples.GaussianMixture(0, -3).sample(500, rng=0)
    odds = (data.probs[:, 1] / data.probs[:, 0]) ** (2 / 3)
    for name, p in (("rain.csv", data.probs[:, 1]), ("softer.csv", odds / (1 + odds))):
        table = np.column_stack([p, data.labels])
        np.savetxt(name, table, fmt=["%.6f", "%d"], delimiter=",", header="p,label", comments="")

    def anew(match: re.Match[str]) -> str:
        if "echo $?" in match[1]:
            return match[0]
        shown = printed(shlex.split(match[1].split(">")[0])[1:], WIDTH)
        return f"```\n$ {match[1]}\n{shown}\n```"

    return SESSION.sub(anew, text)


def main() -> None:
    """Rewrite the pages that are named, or all of them."""
    pages = [Path(name).resolve() for name in sys.argv[1:]]
    pages = pages or sorted(p for p in (ROOT / "docs").rglob("*.md") if "_build" not in p.parts)
    for page in pages:
        before = page.read_text(encoding="utf-8")
        with tempfile.TemporaryDirectory() as folder, in_folder(Path(folder)):
            after = examples_anew(before)
            if page.parent == ROOT / "docs" and page.name in SESSIONS:
                after = sessions_anew(after)
        if after != before:
            page.write_text(after, encoding="utf-8")
            print(page.relative_to(ROOT))


if __name__ == "__main__":
    main()
