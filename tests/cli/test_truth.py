"""No verdict is about a wrong reading: first commands and printed ones, on files of known truth.

What data cannot tell is a follow-up time under a name that nobody knows, beside a label that is
named: the head then says that the column is not used.
"""

import re
import shlex

import pytest
from conftest import obstacle
from truth import FILES, KINDS, alike, case

from caltest._base.written import Doubt

#: Printed commands that are followed one after the other.
DEPTH = 3


def readings(words, holds=()):
    """Return rows that a command reads, or None, and the commands that it prints.

    Of commands with a condition those that ``holds`` says are true are taken.
    """
    code, error, data = obstacle(words)
    printed = re.findall(r"^run: caltest (.+)$", error, re.M)
    for condition, line in re.findall(r"^if (.+?)(?:, say)?: caltest (.+)$", error, re.M):
        if any(words in condition for words in holds):
            printed.append(line.replace("NUMBER", "5"))
    assert code in (0, 2), (words, error)
    doubted = any(isinstance(note, Doubt) for rows in data for note in rows.notes)
    return (data[0] if data else None), [shlex.split(line) for line in printed], doubted, error


#: One file of every second kind is tried whenever tests run, the others with the slow ones.
NUMBERS = [
    number if number in range(0, len(KINDS), 2) else pytest.param(number, marks=pytest.mark.slow)
    for number in range(FILES)
]


@pytest.mark.parametrize("number", NUMBERS)
def test_no_command_reads_what_is_not_meant(number, tmp_path, record_property):
    truth = case(number)
    path = truth.write(tmp_path)
    reached = False
    for first in truth.commands(path):
        todo, attempts = [first], 0
        while todo and attempts <= DEPTH:
            attempts, following = attempts + 1, []
            for words in todo:
                rows, printed, doubted, error = readings(words, truth.holds)
                if rows is not None:
                    said = truth.hidden and f"not used: {truth.hidden}" in rows.notes[0]
                    right = alike(rows, truth)
                    assert right or doubted or said, (truth.kind, words, attempts)
                    reached |= right
                elif truth.answers and words[2:] and words == truth.commands(path)[0]:
                    pytest.fail(f"{truth.kind} is refused: {error}")
                following += printed
            todo = following
        record_property("attempts", attempts)
    assert reached or not truth.holds, truth.kind
