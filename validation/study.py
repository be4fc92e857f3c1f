"""What the studies share: parts that can be resumed, and the command line."""

from __future__ import annotations

import argparse
import inspect
import json
import os
import sys
import time
import zlib
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

import caltest
from caltest._base.arrays import progress
from validation.definition import definition, short
from validation.pages import spread

#: Where the pages are, and the sums that they are made of.
DOCS = Path(__file__).parents[1] / "docs"
MEASURED = Path(__file__).parent / "measured"
#: Data sets of a part: what is lost at most when a run is killed.
PART = 25

#: A kind of data, the tests wanted, a stream → the numbers of every test for one data set. Those
#: of a test do not depend on which others are wanted.
Measure = Callable[[Any, tuple[str, ...], np.random.Generator], dict[str, Sequence[float]]]


def ours(test: str) -> str:
    """Return the version of caltest, whatever the test."""
    return caltest.__version__


@dataclass(frozen=True)
class Study:
    """Kinds of data, and what is measured on data sets of each.

    Attributes
    ----------
    name : str
        That of its page, and of the file that keeps its sums.
    data : dict
        Kinds of data by name.
    tests : callable
        From a kind of data to what defines each of its tests, by name.
    measure : callable
        Draws one data set and returns numbers for every test wanted.
    page : callable
        From what was found to the page without its last lines, and the cells that broke a promise.
    sets, quick : int
        Data sets of each kind, in full and in the small version.
    slow : tuple of str
        Tests left out of the small version, and of others that are to be ``--fast``.
    times : dict
        How many times as many data sets there are of some kinds, but for what is slow.
    version : callable
        From the name of a test to the version of the program that gives its numbers: caltest's,
        unless the test is one of another program, which a new version of caltest leaves as it was.
    """

    name: str
    data: dict[str, Any]
    tests: Callable[[Any], dict[str, Any]]
    measure: Measure
    page: Callable[[Found], tuple[str, list[str]]]
    sets: int = 500
    quick: int = 10
    seed: int = 20190416
    slow: tuple[str, ...] = ()
    times: dict[str, int] = field(default_factory=dict)
    version: Callable[[str], str] = ours


@dataclass
class Cell:
    """The sums of one test on one kind of data, over its data sets 0, …, ``sets`` − 1."""

    by: str
    sets: int = 0
    sums: list[float] = field(default_factory=list)

    @property
    def means(self) -> list[float]:
        return [s / self.sets for s in self.sums]


class Found:
    """What a study has found so far: cells by data and test, kept in one file of a folder.

    A cell is used only by the version of its program, the seed and definitions that measured it.
    """

    def __init__(self, study: Study, seed: int, folder: Path | None, quick: bool = False) -> None:
        self.file = None if folder is None else folder / f"{study.name}.json"
        self.seed, self.quick, self.slow, self.stale = seed, quick, study.slow, 0
        self.module = f"validation.{inspect.getmodulename(study.measure.__code__.co_filename)}"
        code = definition(study.measure)
        self.cells: dict[str, dict[str, Cell]] = {}
        self.seconds: dict[str, float] = {}
        stored: dict[str, Any] = {}
        if self.file is not None and self.file.exists():
            stored = json.loads(self.file.read_text(encoding="utf-8"))
        for name, kind in study.data.items():
            known = stored.get(name, {"seconds": 0.0, "tests": {}})
            drawn = definition(kind)
            self.cells[name] = {}
            for test, what in study.tests(kind).items():
                if quick and test in study.slow:
                    continue
                by = f"{study.version(test)} {short(seed, code, drawn, definition(what))}"
                cell = Cell(by, *known["tests"].get(test, ["", 0, []])[1:])
                if known["tests"].get(test, [by])[0] != by:
                    self.stale += 1
                    cell = Cell(by)
                self.cells[name][test] = cell
            kept = any(cell.sets for cell in self.cells[name].values())
            self.seconds[name] = known["seconds"] if kept else 0.0

    def add(self, name: str, tests: Iterable[str], part: Part) -> None:
        """Add the sums of further data sets, and keep them."""
        for test in tests:
            cell = self.cells[name][test]
            before = cell.sums or [0.0] * len(part.sums[test])
            cell.sums = [a + b for a, b in zip(before, part.sums[test], strict=True)]
            cell.sets += part.sets
        self.seconds[name] += part.seconds
        if self.file is not None:
            self.save()

    def save(self) -> None:
        """Write the file in one step, so that one that was killed leaves the one before."""
        assert self.file is not None
        lines = [
            f"{json.dumps(name, ensure_ascii=False)}: "
            f'{{"seconds": {self.seconds[name]:.1f}, "tests": {{\n'
            + ",\n".join(
                f"  {json.dumps(test, ensure_ascii=False)}: "
                + json.dumps([cell.by, cell.sets, [tidy(s) for s in cell.sums]])
                for test, cell in cells.items()
                if cell.sets
            )
            + "}}"
            for name, cells in self.cells.items()
        ]
        self.file.parent.mkdir(parents=True, exist_ok=True)
        beside = self.file.with_suffix(".tmp")
        beside.write_text("{\n" + ",\n".join(lines) + "\n}\n", encoding="utf-8")
        os.replace(beside, self.file)

    def sets(self, name: str) -> int:
        """Return how many data sets all tests of this kind of data have but the slow ones."""
        return min(c.sets for test, c in self.cells[name].items() if test not in self.slow)

    def means(self, name: str, test: str) -> list[float] | None:
        """Return the means of a test; None where there is nothing."""
        cell = self.cells[name].get(test)
        return cell.means if cell is not None and cell.sets else None

    def trials(self, name: str, test: str) -> int:
        """Return the number of data sets of a test."""
        return self.cells[name][test].sets

    def label(self, test: str) -> str:
        """Return the name of a slow test with how many data sets it has."""
        if test not in self.slow:
            return test
        sets = [self.trials(name, test) for name in self.shown if test in self.cells[name]]
        return f"{test} ({spread(sets)} data sets)"

    @property
    def shown(self) -> list[str]:
        """The kinds of data that have been measured."""
        return [name for name in self.cells if self.sets(name)]

    @property
    def minutes(self) -> float:
        return sum(self.seconds.values()) / 60.0


@dataclass(frozen=True)
class Part:
    """Sums over some data sets, by test."""

    sets: int
    sums: dict[str, list[float]]
    seconds: float


def measured(
    measure: Measure, name: str, kind: Any, tests: tuple[str, ...], numbers: range, seed: int
) -> Part:
    """Measure some data sets; each has a stream of its own, by its number."""
    start = time.process_time()
    sums: dict[str, Any] = dict.fromkeys(tests, 0.0)
    for number in numbers:
        rng = np.random.default_rng([seed, zlib.crc32(name.encode()), number])
        for test, values in measure(kind, tests, rng).items():
            sums[test] = sums[test] + np.asarray(values, dtype=float)
    lists = {test: [float(v) for v in values] for test, values in sums.items()}
    return Part(len(numbers), lists, time.process_time() - start)


def extend(study: Study, found: Found, sets: int, workers: int, fast: bool = False) -> None:
    """Measure until every cell has this many data sets, the least measured kinds first."""

    def goal(name: str, test: str) -> int:
        return sets * (1 if test in study.slow else study.times.get(name, 1))

    def short_of() -> dict[str, dict[str, Cell]]:
        return {
            name: {
                test: cell
                for test, cell in cells.items()
                if cell.sets < goal(name, test) and not (fast and test in study.slow)
            }
            for name, cells in found.cells.items()
        }

    missing = sum(
        -(-(goal(name, test) - cell.sets) // PART)
        for name, cells in short_of().items()
        for test, cell in cells.items()
    )
    with mapped(workers) as each, progress(missing, "cells × parts") as advance:
        while True:
            asked = {name: cells for name, cells in short_of().items() if cells}
            if not asked:
                return
            least = {name: min(c.sets for c in cells.values()) for name, cells in asked.items()}
            names = [name for name, n in least.items() if n < min(least.values()) + PART]
            wanted = [
                tuple(t for t, cell in asked[name].items() if cell.sets == least[name])
                for name in names
            ]
            ranges = [
                range(least[name], min(least[name] + PART, *(goal(name, t) for t in tests)))
                for name, tests in zip(names, wanted, strict=True)
            ]
            parts = each(
                partial(measured, study.measure),
                names,
                [study.data[name] for name in names],
                wanted,
                ranges,
                [found.seed] * len(names),
            )
            for name, tests, part in zip(names, wanted, parts, strict=True):
                found.add(name, tests, part)
                advance(len(tests))


@contextmanager
def mapped(workers: int) -> Iterator[Callable[..., Iterable[Part]]]:
    """Yield a map over processes; none is started for one worker."""
    if workers == 1:
        yield map
        return
    with ProcessPoolExecutor(workers) as pool:
        try:
            yield pool.map
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise


def tidy(value: float) -> float | int:
    """Return a count as an integer."""
    return int(value) if value == int(value) else value


def plan(study: Study, found: Found, sets: int) -> None:
    """Print what the missing data sets of every kind of data cost, timed on one of each."""
    total = 0.0
    for name, kind in study.data.items():
        tests, missing = tuple(found.cells[name]), sets - found.sets(name)
        for _ in range(2):  # the first compiles
            once = measured(study.measure, name, kind, tests, range(1), found.seed).seconds
        total += once * max(0, missing)
        print(f"{once:8.3f} s × {missing:5d}  {name}", flush=True)
    print(f"{study.name}: {total / 60.0:.0f} minutes of one core")


def run(*studies: Study) -> None:
    """Run studies from the command line; fail if a promise is broken."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="a small version, printed only")
    parser.add_argument(
        "--resume",
        type=Path,
        default=MEASURED,
        metavar="DIR",
        help="continue from the sums of this folder, and keep new ones there (validation/measured)",
    )
    parser.add_argument("--sets", type=int, help="data sets of each kind; 0 writes the page only")
    parser.add_argument("--fast", action="store_true", help="leave out what is slow")
    parser.add_argument("--plan", action="store_true", help="print what is missing and its cost")
    parser.add_argument("--seed", type=int)
    parser.add_argument("--workers", type=int, default=2)
    options = parser.parse_args()
    broken = [cell for study in studies for cell in one(study, options)]
    sys.exit(1 if broken else 0)


def one(study: Study, options: argparse.Namespace) -> list[str]:
    """Run one study, and write or print its page; return the cells that broke a promise."""
    start = time.perf_counter()
    seed = study.seed if options.seed is None else options.seed
    found = Found(study, seed, None if options.quick else options.resume, options.quick)
    if found.stale:
        print(f"{study.name}: {found.stale} cells were measured by other code: again", flush=True)
    usual = study.quick if options.quick else study.sets
    sets = usual if options.sets is None else options.sets
    if options.plan:
        plan(study, found, sets)
        return []
    try:
        extend(study, found, sets, options.workers, options.fast)
    except KeyboardInterrupt:
        least = min(found.sets(name) for name in found.cells)
        print(f"{study.name}: interrupted at {least} of {sets} data sets; run it again to go on")
        sys.exit(130)
    if not found.shown:
        print(f"{study.name}: nothing has been measured")
        return []
    text, broken = study.page(found)
    if options.quick:
        print(text)
    else:
        (DOCS / f"{study.name}.md").write_text(text, encoding="utf-8")
    print(f"{study.name}: {time.perf_counter() - start:.0f} s")
    for cell in broken:
        print(f"promise broken: {cell}")
    return broken
