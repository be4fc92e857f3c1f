"""No verdict is about a wrong reading: first commands and printed ones, on files of known truth."""

import re
import shlex

import pytest
from conftest import obstacle
from truth import FILES, alike, case

#: Printed commands that are followed one after the other.
DEPTH = 3
#: Kinds of files of which the guards cannot know the truth, and why.
UNKNOWABLE = {
    "complement": "one number for all is likelier than the complement of few rows",
    "censored": "the score test of swapped censoring has 57 % power at n = 100",
}


def readings(words):
    """Return rows that a command reads, or None, and the commands that it prints."""
    code, error, data = obstacle(words)
    printed = re.findall(r"^run: caltest (.+)$", error, re.M)
    assert code in (0, 2), (words, error)
    doubted = "In doubt" in error or any(getattr(rows, "doubts", ()) for rows in data)
    return (data[0] if data else None), [shlex.split(line) for line in printed], doubted, error


@pytest.mark.parametrize("number", range(FILES))
def test_no_command_reads_what_is_not_meant(number, tmp_path, record_property):
    truth = case(number)
    path = truth.write(tmp_path)
    for first in truth.commands(path):
        todo, attempts = [first], 0
        while todo and attempts <= DEPTH:
            attempts, following = attempts + 1, []
            for words in todo:
                rows, printed, doubted, error = readings(words)
                if rows is not None:
                    assert alike(rows, truth) or doubted, (truth.kind, words, attempts)
                elif truth.answers and words[2:] and words == truth.commands(path)[0]:
                    pytest.fail(f"{truth.kind} is refused: {error}")
                following += printed
            todo = following
        record_property("attempts", attempts)
