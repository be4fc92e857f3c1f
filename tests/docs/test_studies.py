"""The machinery of the studies: parts that survive a kill, extend each other, and go stale."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from validation import study
from validation.study import Found, Study, extend

CALLS: list[tuple[float, tuple[str, ...]]] = []


def measure(kind, wanted, rng):
    CALLS.append((kind, wanted))
    if kind == 3.0 and len(CALLS) > 60:
        raise KeyboardInterrupt
    x = kind * rng.random()
    return {name: (len(name) * x, 1.0) for name in wanted}


def tiny(kinds=(1.0, 2.0), tests=("mean",)) -> Study:
    data = {f"kind {kind:g}": kind for kind in kinds}
    return Study("tiny", data, lambda kind: dict.fromkeys(tests, 1), measure, lambda f: ("", []))


def sums(found: Found) -> dict[str, dict[str, tuple[int, list[float]]]]:
    return {
        name: {test: (cell.sets, cell.sums) for test, cell in cells.items()}
        for name, cells in found.cells.items()
    }


@pytest.fixture(autouse=True)
def _forget_calls():
    CALLS.clear()


def grown(of: Study, folder: Path | None, *sizes: int, workers: int = 1, seed: int = 1) -> Found:
    for size in sizes:
        found = Found(of, seed, folder)
        extend(of, found, size, workers)
    return found


def test_parts_add_up_to_one_long_run(tmp_path):
    found = grown(tiny(), tmp_path / "a", 10, 25, 60)
    straight = grown(tiny(), tmp_path / "b", 60)
    assert found.sets("kind 1") == 60
    for name, cells in sums(straight).items():
        for test, (sets, values) in cells.items():
            assert sums(found)[name][test][0] == sets
            np.testing.assert_allclose(sums(found)[name][test][1], values, rtol=1e-14)


def test_what_is_there_is_not_measured_again(tmp_path):
    grown(tiny(), tmp_path, 30)
    CALLS.clear()
    grown(tiny(), tmp_path, 30)
    assert CALLS == []
    found = grown(tiny(tests=("mean", "other")), tmp_path, 30)  # only the new test is run
    assert (len(CALLS), {wanted for _, wanted in CALLS}, found.stale) == (60, {("other",)}, 0)


def test_some_kinds_get_more_data_sets_but_not_of_slow_tests(tmp_path):
    more = replace(tiny(tests=("mean", "slow")), times={"kind 1": 3}, slow=("slow",))
    found = grown(more, tmp_path, 30)
    counts = {name: [cell.sets for cell in cells.values()] for name, cells in found.cells.items()}
    assert counts == {"kind 1": [90, 30], "kind 2": [30, 30]}


def test_parts_of_another_seed_version_or_definition_are_measured_again(tmp_path, monkeypatch):
    grown(tiny(), tmp_path, 10)
    assert Found(tiny(), 2, tmp_path).stale == 2
    changed = Found(replace(tiny(), data={"kind 1": 1.5, "kind 2": 2.0}), 1, tmp_path)
    assert (changed.stale, changed.shown) == (1, ["kind 2"])
    monkeypatch.setattr(study.caltest, "__version__", "0.0.0")
    assert Found(tiny(), 1, tmp_path).stale == 2
