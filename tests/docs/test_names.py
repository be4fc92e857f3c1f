"""The page of names is what the code says, and each word has one meaning."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
NAMES = runpy.run_path(str(ROOT / "scripts" / "names.py"))


def test_the_page_is_what_the_script_writes():
    assert (ROOT / "docs" / "names.md").read_text(encoding="utf-8") == NAMES["page"]()


def test_every_constructor_and_verb_is_called():
    page = NAMES["page"]()
    for name in ("ECE", "SCE", "TopK", "QuantileBins", "RedrawLabels", "joint_test", "compare"):
        assert f"`{name}(" in page


@pytest.mark.parametrize("change", [{"workers": None}, {"workerz": "What?"}])
def test_words_and_meanings_belong_together(change, monkeypatch):
    meanings = NAMES["MEANINGS"]
    for word, meaning in change.items():
        if meaning is None:
            monkeypatch.delitem(meanings, word)
        else:
            monkeypatch.setitem(meanings, word, meaning)
    with pytest.raises(ValueError, match="worker"):
        NAMES["page"]()
