"""Other packages, on the data of :mod:`validation.peers`; none of them is needed here."""

import numpy as np
import pytest

from validation import peers
from validation.peers_fixed import FIXED
from validation.peers_tools import TOOLS
from validation.study import DOCS, MEASURED, Found

OWN = [name for name in TOOLS if name.split()[0] in ("caltest", "NumPy")]


def test_every_tool_is_of_a_package_whose_version_is_named():
    packages = {peers.package(name) for name in TOOLS} | {who for who, _, _ in FIXED.values()}
    assert packages == {*peers.VERSIONS, "caltest", "NumPy"}


@pytest.mark.parametrize("name", [name for name, (who, _, _) in FIXED.items() if who == "caltest"])
def test_own_answers_are_the_right_ones(name):
    _, how, right = FIXED[name]
    value, answered = peers.answered(how)
    assert bool(answered) == (right != "none")
    if right == "about 0":
        assert 0.0 < value < 1e-6
    elif right.startswith("≥"):
        assert value >= float(right.removeprefix("≥ ")) - 5e-4
    elif answered:
        assert value == pytest.approx(float(right), abs=1e-12)


@pytest.mark.parametrize("kind", peers.KINDS, ids=lambda kind: kind.key)
def test_own_tools_have_an_answer(kind):
    found = peers.measure(kind, tuple(OWN), np.random.default_rng(2))
    assert set(found) == set(OWN)
    assert all(values[0] == 1.0 for values in found.values())


def test_the_page_is_made_of_the_sums_alone():
    text, broken = peers.page(Found(peers.STUDY, peers.STUDY.seed, MEASURED))
    assert broken == []
    assert all(f"| {name} |" in text for name in TOOLS)
    assert (DOCS / "peers.md").read_text(encoding="utf-8").splitlines()[0] == text.splitlines()[0]
