"""Results are laid out for the width of the terminal."""

import re

import numpy as np
import pytest

from caltest import cli
from caltest.cli.layout import PIPED_WIDTH, WHOLE_LINE, laid_out, wrapped
from caltest.results.rendering import LINE_WIDTH, aligned, folded

FEW = ("--n-resamples", "199")

#: A call of every verb that prints a result; FILE stands for a file of hospitals.
CALLS = {
    "audit": ("audit", "FILE", "--label", "died", "--by", "hospital", "--tolerance", "0.05", *FEW),
    "audit of the example": ("audit", *FEW),
    "compare": ("compare", "FILE", "OTHER", "--label", "died", *FEW),
    "decide": ("decide", "FILE", "--label", "died", "--threshold", "0.2"),
    "gate": ("gate", "FILE", "--label", "died", "--tolerance", "0.05", *FEW),
    "grades": ("grades", "GRADES"),
    "interval": ("interval", "FILE", "--label", "died", *FEW),
    "plan": ("plan", "--like", "FILE", "--label", "died", "--n-datasets", "100"),
    "plot": ("plot", "FILE", "--label", "died", "-o", "PICTURE"),
    "report": ("report", "FILE", "--label", "died", "-o", "PAGE", *FEW),
    "segments": ("segments", "FILE", "--label", "died", *FEW),
    "test": ("test", "FILE", "--label", "died", "--by", "hospital", *FEW),
}


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("layout")
    rng = np.random.default_rng(4)
    p = rng.beta(1.0, 3.0, 800)
    y = (rng.random(800) < 0.1 + 0.8 * p).astype(int)
    place = rng.choice(["Porto", "Leuven and surroundings", "Turku"], 800)
    for name, shift in (("FILE", 0.0), ("OTHER", 0.03)):
        lines = [
            f"{q:.4f},{h},{died}" for q, h, died in zip(p * (1 - shift), place, y, strict=True)
        ]
        (folder / f"{name}.csv").write_text("\n".join(["risk,hospital,died", *lines]) + "\n")
    grades = ["grade,pd,obligors,defaults", "AAA,0.001,500,1", "BBB,0.01,400,9", "C,0.1,90,8"]
    (folder / "GRADES.csv").write_text("\n".join(grades) + "\n")
    return folder


def called(words, folder):
    ends = {"PICTURE": ".svg", "PAGE": ".html"}
    return [str(folder / f"{w}{ends.get(w, '.csv')}") if w.isupper() else w for w in words]


@pytest.mark.parametrize("name", CALLS)
def test_no_line_is_longer_than_80_columns(name, files, run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    code, out, err = run(*called(CALLS[name], files))
    assert code in (0, 1, 3), err
    assert out.strip()
    assert max(map(len, out.splitlines())) <= 80
    assert "\x1b" not in out  # no colours in a pipe


def test_every_verb_with_a_result_has_a_call():
    streams = {"monitor", "revisions"}  # these print one line a run
    assert {words[0] for words in CALLS.values()} == set(cli.COMMANDS) - streams


@pytest.mark.parametrize("name", ["audit", "segments"])
def test_piped_text_without_columns_has_whole_tables_and_short_sentences(
    name, files, run, monkeypatch
):
    monkeypatch.delenv("COLUMNS", raising=False)
    _, out, _ = run(*called(CALLS[name], files))
    lines = out.splitlines()
    assert {*map(len, lines)} & {*range(81, 200)}
    for line in lines:
        assert len(line) <= PIPED_WIDTH or len(re.findall(r"\S {2,}(?=\S)", line)) >= 2


def test_a_command_to_copy_is_not_broken():
    command = f"To audit with these clusters, run: caltest audit {'x' * 120}.csv --clusters a"
    assert WHOLE_LINE.search(command)
    assert not WHOLE_LINE.search("  Note: pass --clusters COLUMN if rows belong together.")


def test_a_warning_is_wrapped_to_the_width(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "60")
    cli._show_warning(UserWarning("clusters are few " * 10))
    assert max(map(len, capsys.readouterr().err.splitlines())) <= 60


def test_quiet_leaves_the_verdict_and_numbers(files, run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    _, out, _ = run(*called(CALLS["gate"], files), "--quiet")
    assert "Note:" not in out
    assert "caltest 0" not in out
    assert out.startswith(("◆ ", "✓ ", "? "))


def test_a_value_goes_on_below_itself():
    line = "  95 % interval  0.0107 to 0.0541  (inversion of tests, with all that belongs to it)"
    assert wrapped(line, 50)[1].startswith(" " * 17)


def test_short_lines_stay_and_long_words_are_broken():
    assert laid_out("a\n\nb", 40) == "a\n\nb"
    assert max(map(len, laid_out("x" * 100, 40).splitlines())) <= 40


@pytest.mark.parametrize("width", [60, 40, 30])
def test_a_narrow_table_keeps_finding_and_error(width):
    table = {
        "question": ["is the confidence of the model right?"], "finding": ["miscalibrated"],
        "error": [0.0732], "n": [900], "bins": ["UniformBins(15)"],
    }  # fmt: skip
    token = LINE_WIDTH.set(width)
    try:
        lines = aligned(table)
    finally:
        LINE_WIDTH.reset(token)
    assert max(map(len, lines)) <= width
    assert "finding" in lines[0]
    assert "error" in lines[0]


def test_cells_that_are_too_wide_go_on_below_in_full_words():
    table = {"pair": ["new − old"], "verdict": ["new is better calibrated than the old one"]}
    token = LINE_WIDTH.set(30)
    try:
        lines = aligned(table)
    finally:
        LINE_WIDTH.reset(token)
    assert "…" not in "".join(lines)
    assert " ".join(" ".join(line[13:].split()) for line in lines[1:]).split() == (
        ["new", "is", "better", "calibrated", "than", "the", "old", "one"]
    )


@pytest.mark.parametrize("name", ["compare", "grades", "segments", "gate"])
def test_the_finding_is_said_once(name, files, run, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    _, out, _ = run(*called(CALLS[name], files))
    first, *_ = out.split("\n")
    if first.startswith(("◆ ", "? ", "✓ ")):
        said = " ".join(first[2:].split()[:4]).lower()
        text = " ".join(out.split()).lower()
        assert text.count(said.lower()) == 1
        words = said.replace(":", "").split()
        assert words[:2] != words[2:4]


def test_the_table_of_grades_has_full_heads_and_the_judged_p_values_at_80_columns(
    files, run, monkeypatch
):
    monkeypatch.setenv("COLUMNS", "80")
    _, out, _ = run(*called(CALLS["grades"], files))
    assert "…" not in out
    assert "adjusted p" in out


def test_a_line_is_broken_neither_before_a_unit_nor_within_a_p_value():
    line = "the interval of 95 % and the error of 3.0 pp, 0.61 ± 0.02, p ≤ 0.0005, p = 0.013"
    words = [word for width in range(12, 80) for word in folded(line, width)]
    assert not any(word.startswith(("%", "pp", "±", "≤", "= ", "0.0005")) for word in words)
    assert not any(word.endswith((" p", "±", "≤", "=")) for word in words)
    assert all(" ".join(folded(line, width)) == line for width in (20, 40, 60))


def test_folded_lines_keep_their_indent():
    assert folded("note: a b c d", 9, "    ") == ["note: a b", "    c d"]
