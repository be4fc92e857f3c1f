"""The machinery of the studies: parts that survive a kill, extend each other, and go stale."""

import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from validation import coverage, study, type_one_error
from validation.study import Found, Study, extend

ROOT = Path(__file__).parents[2]

#: A study of two kinds of data that dies in the middle of its third part when asked to.
TINY = """
import os, sys
from pathlib import Path
from validation import study

calls = 0

def tests(kind):
    return {"mean": kind, "largest": kind}

def measure(kind, wanted, rng):
    global calls
    calls += 1
    if os.environ.get("DIE") and calls == 60:
        os._exit(9)
    x = kind * rng.random(3)
    numbers = {"mean": (x.mean(), 1.0), "largest": (x.max(),)}
    return {name: numbers[name] for name in wanted}

def page(found):
    lines = [f"{name} {found.sets(name)} {found.means(name, 'mean')} "
             f"{found.means(name, 'largest')}" for name in found.shown]
    return "\\n".join(lines), []

study.DOCS = Path(sys.argv.pop())
study.run(study.Study("tiny", {"one": 1.0, "two": 2.0}, tests, measure, page, sets=40))
"""


def test_a_killed_study_goes_on_and_gets_the_same_table(tmp_path):
    script = tmp_path / "tiny.py"
    script.write_text(TINY, encoding="utf-8")

    def run(folder: Path, **environment: str) -> int:
        folder.mkdir(exist_ok=True)
        options = ["--workers", "1", "--resume", str(folder), str(folder)]
        known = {**os.environ, "PYTHONPATH": str(ROOT), **environment}
        return subprocess.run([sys.executable, str(script), *options], env=known).returncode

    killed, straight = tmp_path / "killed", tmp_path / "straight"
    assert run(killed, DIE="yes") == 9
    assert not (killed / "tiny.md").exists()
    assert (killed / "tiny.json").exists()
    assert run(killed) == 0
    assert run(straight) == 0
    table = (straight / "tiny.md").read_text(encoding="utf-8")
    assert (killed / "tiny.md").read_text(encoding="utf-8") == table
    assert table.splitlines()[0].startswith("one 40 [0.")


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
    assert {wanted for _, wanted in CALLS} == {("other",)}
    assert len(CALLS) == 60
    assert found.stale == 0


def test_parts_of_another_seed_version_or_definition_are_measured_again(tmp_path, monkeypatch):
    grown(tiny(), tmp_path, 10)
    assert Found(tiny(), 2, tmp_path).stale == 2
    changed = replace(tiny(), data={"kind 1": 1.5, "kind 2": 2.0})
    assert Found(changed, 1, tmp_path).stale == 1
    assert Found(changed, 1, tmp_path).shown == ["kind 2"]
    monkeypatch.setattr(study.caltest, "__version__", "0.0.0")
    assert Found(tiny(), 1, tmp_path).stale == 2


@pytest.mark.slow
@pytest.mark.parametrize("module", [coverage, type_one_error])
def test_also_what_the_small_version_leaves_out_is_measured(module):
    slow = set(module.STUDY.slow)
    kinds = [item for item in module.STUDY.data.items() if slow & set(module.STUDY.tests(item[1]))]
    name, kind = min(kinds, key=lambda item: item[1].n)
    tests = tuple(module.STUDY.tests(kind))
    found = study.measured(module.STUDY.measure, name, kind, tests, range(1), seed=1)
    assert set(found.sums) == set(tests)
