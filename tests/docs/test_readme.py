"""The README tells the truth."""

import re
from pathlib import Path

import pytest

from caltest import cli

README = Path(__file__).parents[2] / "README.md"


def test_the_audit_shown_is_the_audit_printed(capsys):
    (shown,) = re.findall(r"```text\n(.*?)```", README.read_text(encoding="utf-8"), re.DOTALL)
    with pytest.raises(SystemExit):
        cli.main(["audit"])
    assert capsys.readouterr().out.strip() == shown.strip()


def test_there_are_two_set_up_commands():
    lines = README.read_text(encoding="utf-8").splitlines()
    commands = [line for line in lines if line.startswith("python3 -m venv")]
    assert len(commands) == 2
    assert commands[0].endswith("caltest audit")
    assert commands[1].endswith("pytest --quiet")
