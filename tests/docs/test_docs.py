"""The documentation and the README tell the truth, and public names are nouns of the field."""

import doctest
import inspect
import itertools
import re
import runpy
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path

import numpy as np
import pytest

import caltest as ct
from caltest import cli, plots

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs"
PAGES = "".join((DOCS / page).read_text(encoding="utf-8") for page in ("start.md", "commands.md"))
SESSIONS = re.findall(r"```\n\$ (caltest [^\n]*)\n(?!```)(.*?)```", PAGES, re.DOTALL)


REFERENCE = runpy.run_path(str(ROOT / "scripts" / "reference.py"))


def _documented(module: str) -> set[str]:
    """Names with a page of the reference; ``currentmodule`` says of which module."""
    page = REFERENCE["completed"]((DOCS / "reference.md").read_text(encoding="utf-8"))
    return {name for of, names in REFERENCE["lists"](page) if of == module for name in names}


def test_a_new_name_of_a_room_is_listed_in_its_section():
    page = (DOCS / "reference.md").read_text(encoding="utf-8")
    exported = REFERENCE["exports"]()
    rooms = {room for room, name in exported if room in ("nulls", "statistics", "tallies")}
    more = [*exported, *((room, f"New{room}") for room in sorted(rooms))]
    listed = REFERENCE["lists"](REFERENCE["completed"](page, more))
    assert [names for of, names in listed if names[0].startswith("New")] == [
        ["Newtallies"],
        ["Newstatistics"],
        ["Newnulls"],
    ]
    before = page.index("## Partitions")
    assert REFERENCE["PLACE"].findall(page[:before])[-1] == ("Further statistics", "statistics")


def test_every_public_name_is_in_the_reference():
    values = {name for name in ct.__all__ if not inspect.ismodule(getattr(ct, name))}
    assert values - {"__version__"} == _documented("caltest")
    assert set(plots.__all__) == _documented("caltest.plots")
    assert set(ct.recalibration.__all__) == _documented("caltest.recalibration")


def test_every_preset_and_command_is_in_the_reference():
    presets = {
        name
        for name, value in vars(ct.presets).items()
        if getattr(value, "__module__", "") == "caltest.presets" and not name.startswith("_")
    }
    assert presets - {"Task"} == _documented("caltest.presets")
    reference = (DOCS / "reference.md").read_text(encoding="utf-8")
    assert set(re.findall(r"`caltest (\w+)`", reference)) == set(cli.COMMANDS)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Return a folder with the two files that the page writes."""
    data = ct.examples.GaussianMixture(0, -3).sample(500, rng=0)
    odds = (data.probs[:, 1] / data.probs[:, 0]) ** (2 / 3)
    where = tmp_path_factory.mktemp("start")
    for name, p in (("rain.csv", data.probs[:, 1]), ("softer.csv", odds / (1 + odds))):
        table = np.column_stack([p, data.labels])
        header = {"header": "p,label", "comments": ""}
        np.savetxt(where / name, table, fmt=["%.6f", "%d"], delimiter=",", **header)
    return where


@pytest.mark.parametrize(("command", "shown"), SESSIONS, ids=[line for line, _ in SESSIONS])
def test_sessions_of_the_first_steps(command, shown, folder, monkeypatch, run):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", "104")  # as in a terminal
    code, out, _ = run(*shlex.split(command.split(">")[0])[1:])
    printed = "\n".join(line.rstrip() for line in out.splitlines()).strip()
    assert (f"{code}" if "echo $?" in command else printed) == shown.strip()


def test_the_audit_shown_is_what_the_audit_prints_first(run):
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    (shown,) = re.findall(r"```text\n(.*?)```", readme, re.DOTALL)
    assert run("audit")[1].strip().startswith(shown.strip())
    lines = readme.splitlines()
    assert len(lines) < 120
    commands = [line.partition(" #")[0].split() for line in lines if line.startswith("caltest ")]
    assert len(commands) == 9
    for _, command, *words in commands:  # whose options all exist
        cli.cli.get_command(None, command).make_context(command, words)


#: What says nothing of what a thing is.
EMPTY = {"found", "own", "said", "told", "asked", "seen", "held", "kept", "known", "drawn", "given"}


@pytest.mark.parametrize("name", sorted(set(ct.__all__) - {"__version__"}))
def test_public_words_are_nouns_of_the_field(name):
    value = getattr(ct, name)
    if not callable(value):
        return assert_plain(vars(value), name) if inspect.ismodule(value) else None
    fields = getattr(value, "__dataclass_fields__", {})
    try:
        parameters = inspect.signature(value).parameters
    except ValueError:
        parameters = {}
    assert_plain({*fields, *parameters}, name)
    return None


def assert_plain(words, name):
    assert not EMPTY & set(words), f"{name} has the words {EMPTY & set(words)}"


def test_the_version_and_the_dependencies_are_the_same_wherever_they_stand():
    """The citation and the conda recipe repeat what the package says of itself."""
    recipe = (ROOT / "conda" / "recipe.yaml").read_text()
    assert f'version: "{ct.__version__}"' in recipe
    assert f"\nversion: {ct.__version__}\n" in (ROOT / "CITATION.cff").read_text()
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    wanted = {spec.replace("matplotlib>", "matplotlib-base>") for spec in project["dependencies"]}
    assert {line[6:].replace(" ", "") for line in recipe.splitlines() if " >=" in line} == (
        wanted | {f"python{project['requires-python']}"}
    )
    oldest = (ROOT / "scripts" / "oldest.txt").read_text()
    for spec in project["dependencies"]:
        assert spec.replace(">=", "==") in oldest


@pytest.mark.slow
def test_the_worked_examples_run():
    """The statistic and the scheme of the page for contributors, in the order of the page."""
    page = (DOCS / "own_statistic.md").read_text(encoding="utf-8")
    names = {"__name__": "own_statistic"}
    for kind, text in re.findall(r"```\{(testcode|doctest)\}\n(.*?)```", page, re.DOTALL):
        if kind == "testcode":
            exec(compile(text, "own_statistic.md", "exec"), names)
            continue
        example = doctest.DocTestParser().get_doctest(text, names, "own_statistic.md", None, 0)
        runner = doctest.DocTestRunner()
        assert runner.run(example, clear_globs=False).failed == 0
        names = example.globs


@pytest.mark.slow
def test_survivors_that_were_judged_are_changes_of_this_tree():
    """No judgement in scripts/mutants.py is about a line that has gone."""
    mutants = runpy.run_path(str(ROOT / "scripts" / "mutants.py"))
    left = {*mutants["JUDGED"]}
    for path in sorted((ROOT / "caltest").rglob("*.py")):
        module = path.relative_to(ROOT / "caltest").as_posix()
        for mutant in itertools.chain(*mutants["mutants_of"](module)):
            became = mutant.described()["became"]
            left -= {key for key in left if module.startswith(key[0]) and key[1] in became}
    assert left == set()


@pytest.mark.parametrize("script", ["rooms.py", "row_facts.py", "figures.py"])
def test_pages_that_are_made_by_a_script_are_up_to_date(script):
    command = [sys.executable, str(ROOT / "scripts" / script), "--check"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
