"""The help, and which options a command has."""

import re
from pathlib import Path

import pytest

from caltest import cli
from caltest.read.contract import CONTRACT, contract_text

ROOT = Path(cli.__file__).parents[2]


@pytest.mark.parametrize("name", cli.COMMANDS)
def test_common_options_are_listed_in_groups(name, done):
    common, everything = done(name, "--help"), done(name, "--help-all")
    groups = re.findall(r"^(Input|Design|Test|Output):$", common, re.M)
    assert groups == sorted(groups, key=["Input", "Design", "Test", "Output"].index)
    options = common.partition("\nInput:")[2] or common.partition("\nTest:")[2]
    assert len(options.splitlines()) <= 44
    assert all(len(line) <= 80 for line in everything.splitlines())
    assert set(re.findall(r"--[a-z-]+", options)) <= set(re.findall(r"--[a-z-]+", everything))


def test_options_stand_only_where_they_work():
    def options(name):
        return {o for p in cli.cli.get_command(None, name).params for o in p.opts}

    for name in ("plan", "gate", "segments", "monitor", "grades"):
        assert "--by" not in options(name)
    for name in ("interval", "compare", "gate", "plan", "segments", "report"):
        assert "--multilabel" not in options(name)
    ended = {"--percent", "--pos-label", "--drop-label", "--one-model"}
    assert not any(ended & options(name) for name in cli.COMMANDS if name != "grades")


@pytest.mark.parametrize("verb", ["audit", "test", "report", "gate"])
def test_an_output_is_no_input(verb, tmp_path, refused, monkeypatch):
    data = tmp_path / "f.md"
    data.write_text("p,label\n0.2,0\n0.7,1\n")
    link = tmp_path / "link.md"
    link.symlink_to(data)
    hard = tmp_path / "hard.md"
    hard.hardlink_to(data)
    for target in (data, link, hard):
        words = (verb, data, "--format", "csv", "--out", target)
        refused("is the input", *words, *(("--tolerance", 0.1) if verb == "gate" else ()))
    assert data.read_text().startswith("p,label")


def test_an_unexpected_error_is_one_sentence_and_70(run, monkeypatch):
    def broken(*data, **options):
        raise ZeroDivisionError("nobody\nforesaw this")

    monkeypatch.setattr(cli.verbs.ct, "audit", broken)
    code, out, error = run("audit")
    assert (code, out) == (70, "")
    assert "unexpected error (ZeroDivisionError: nobody)" in error
    assert "Traceback" not in error
    assert "Traceback" in run("audit", "--debug")[2]


def test_all_help_lists_the_names_of_the_contract(done):
    said = " ".join(done("audit", "--help-all").split())
    assert all(", ".join(listed.names) in said for listed in CONTRACT)


def test_the_page_has_the_table_of_the_contract():
    assert contract_text() in (ROOT / "docs" / "files.md").read_text(encoding="utf-8")
