"""The paper says nothing that the generated tables do not."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAPER = (ROOT / "paper" / "paper.md").read_text(encoding="utf-8")
ONE_LINE = " ".join(PAPER.split("---", 2)[2].split())

#: A sentence of the paper, the page its numbers stand on, and where.
CLAIMS = [
    (
        "leave out 0 in {} of calibrated data sets with 100 uniform predictions;",
        "peers.md",
        r"\| NumPy loop, percentiles of ECE \| \d+ \| \**([\d.]+)",
    ),
    ("those of caltest in {}.", "peers.md", r"\| caltest ECE, interval \| \d+ \| \**([\d.]+)"),
    (
        "is at most 0.05 in {} of calibrated data sets",
        "peers.md",
        r"\| MCGrad MCE, three features \| \d+ \| \**([\d.]+)",
    ),
    ("at level 0.05 in {} of data sets on average", "validity.md", r"in ([\d.]+) of data sets"),
    ("Over {} cells of lens", "validity.md", r"of data sets on average over (\d+) cells"),
    ("contain the true error in {} of data sets", "coverage.md", r"in ([\d.]+) of data sets"),
    ("on average over {} cells.", "coverage.md", r"on average over (\d+) cells"),
    ("different in {} of data sets on average", "comparison.md", r"different in ([\d.]+)"),
    ("over {} kinds of data.", "comparison.md", r"on average over (\d+) kinds of data"),
    ("takes {} times as long as a C", "performance.md", r"\| top-1, 15 bins.*?× \| ([\d.]+) ×"),
    ("hand {} times as long as caltest", "performance.md", r"\| top-1, 15 bins.*? \| ([\d.]+) ×"),
]


@pytest.mark.parametrize(("sentence", "page", "pattern"), CLAIMS)
def test_a_number_of_the_paper_is_that_of_the_page(sentence, page, pattern):
    text = " ".join((ROOT / "docs" / page).read_text(encoding="utf-8").split())
    number = re.search(pattern, text)
    assert number, f"{page} has no {pattern}"
    assert sentence.format(number[1]) in ONE_LINE


def test_there_are_no_other_numbers_and_every_source_is_cited():
    text = ONE_LINE
    for sentence, _page, _pattern in CLAIMS:
        text = re.sub(re.escape(sentence).replace(r"\{\}", r"[\d.]*\d"), "", text)
    text = re.sub(r"@[a-z]+\d{4}|80 %|95 %|ECE of 0\.04|zero|LLVM|at level 0\.05", "", text)
    assert re.findall(r"\d[\d.]*", text) == []
    bibliography = (ROOT / "paper" / "paper.bib").read_text(encoding="utf-8")
    sources = set(re.findall(r"\{([a-z]+\d{4}),", bibliography))
    assert set(re.findall(r"@([a-z]+\d{4})", PAPER)) == sources
