"""Do the tests notice a small change of the package? A mutation study.

``python scripts/mutants.py cover`` runs the fast tests once, and notes which lines and kernels
each test runs. ``… run`` draws mutants by their number from a seed, every place alike: an operator,
a number or a flag, a bound of a slice, a ``not``, min for max, an update left out. In a copy of the
package, each is tried by the 40 tests nearest to its line, and what survives by the others of
that line; mutants that cannot be imported are drawn again. ``… again TEST …`` tries the survivors
with tests of this tree, ``… show`` lists them with what was judged of them.

Left alone are messages, ``__repr__``, annotations, options of ``dataclass``, and numbers and
flags in ``plots/``.
"""

from __future__ import annotations

import argparse
import ast
import importlib
import json
import os
import random
import re
import resource
import shutil
import signal
import sqlite3
import sys
from collections import defaultdict
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

ROOT = Path(__file__).parents[1]
#: What the tests read.
PARTS = ("caltest", "tests", "validation", "docs", "paper", "paper_replications", "scripts")
PARTS += ("conda", "action.yml", "CITATION.cff", "pyproject.toml", "README.md")
OPERATORS = {
    ast.Add: "+-", ast.Sub: "-+", ast.Mult: "*/", ast.Div: "/*", ast.FloorDiv: ("//", "*"),
    ast.Pow: ("**", "*"), ast.Mod: "%*", ast.Lt: ("<", "<="), ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="), ast.GtE: (">=", ">"), ast.Eq: ("==", "!="), ast.NotEq: ("!=", "=="),
    ast.And: ("and", "or"), ast.Or: ("or", "and"), ast.BitAnd: "&|", ast.BitOr: "|&",
}  # fmt: skip
NAMES = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum"}
FUNCTIONS = ast.FunctionDef | ast.AsyncFunctionDef
CPU, LONGER = 60, 180  # seconds after which the nearest tests, and the others, hang
OTHERS = 40.0  # seconds that the others take in all
#: What a preloaded parent spares each mutant.
HEAVY = "scipy.stats scipy.optimize scipy.special numba matplotlib.pyplot pandas sklearn rich click"


class Mutant(NamedTuple):
    """A change of the text of a module, and where the tests that run it are found."""

    module: str
    low: int
    high: int
    new: str
    line: int
    #: The first and last line of the code whose tests are asked, or a kernel, or a name.
    lines: tuple[int, int]
    kernel: str
    name: str

    def applied(self, raw: bytes) -> bytes:
        """Return the text of the module as it becomes."""
        return raw[: self.low] + self.new.encode() + raw[self.high :]


def mutants_of(module: str) -> Iterator[list[Mutant]]:
    """Yield the mutants of every place of a module."""
    raw = (ROOT / "caltest" / module).read_bytes()
    starts = [0]
    for text in raw.splitlines(keepends=True):
        starts.append(starts[-1] + len(text))
    cosmetic = module.startswith("plots/")

    def begin(node: Any) -> int:
        return starts[node.lineno - 1] + node.col_offset

    def end(node: Any) -> int:
        return starts[node.end_lineno - 1] + node.end_col_offset

    def edits(node: ast.AST) -> Iterator[tuple[int, int, list[str]]]:
        pairs: list[tuple[ast.expr, ast.AST, ast.expr]] = []
        match node:
            case ast.BinOp():
                pairs = [(node.left, node.op, node.right)]
            case ast.Compare():
                values = [node.left, *node.comparators]
                pairs = list(zip(values, node.ops, values[1:], strict=False))
            case ast.BoolOp():
                pairs = [(a, node.op, b) for a, b in zip(node.values, node.values[1:], strict=False)]
            case ast.Constant(value=bool()) if not cosmetic:
                yield begin(node), end(node), [repr(not node.value)]
            case ast.Constant(value=int() | float()) if not cosmetic:
                now = node.value
                new = {0: [1], 1: [0, 2]}.get(now, [now - 1, now + 1])
                yield begin(node), end(node), [repr(type(now)(value)) for value in new]
            case ast.UnaryOp(op=ast.Not()):
                yield begin(node), begin(node) + len("not"), [""]
            case ast.Name(id=name) | ast.Attribute(attr=name) if name in NAMES:
                yield end(node) - len(name), end(node), [NAMES[name]]
            case ast.Slice():
                for bound in (node.lower, node.upper):
                    if bound is not None and not isinstance(bound, ast.Constant | ast.UnaryOp):
                        text = raw[begin(bound) : end(bound)].decode()
                        yield begin(bound), end(bound), [f"({text}) + 1", f"({text}) - 1"]
            case ast.AugAssign() | ast.Assign(targets=[ast.Subscript() | ast.Attribute()]):
                yield begin(node), end(node), ["pass"]
        for left, operator, right in pairs:
            old, new = OPERATORS.get(type(operator), ("", ""))
            at = raw.find(old.encode(), end(left), begin(right)) if old else -1
            if at >= 0:
                yield at, at + len(old), [new]

    def visit(node: ast.AST, where: Any, lines: Any, name: str) -> Iterator[list[Mutant]]:
        for low, high, news in edits(node):
            line = raw[:low].count(b"\n") + 1
            marks = [ast.unparse(mark) for mark in getattr(where, "decorator_list", [])]
            kernel = any(mark == "inlined" or mark.endswith("kernel") for mark in marks)
            key = "*" if "inlined" in marks else where.name if kernel else ""
            yield [Mutant(module, low, high, new, line, lines, key, name) for new in news]
        for field, value in ast.iter_fields(node):
            if field in ("annotation", "returns", "type_params"):
                continue
            for child in value if isinstance(value, list) else [value]:
                if not isinstance(child, ast.AST) or skipped(child):
                    continue
                inside, span, called = where, lines, name
                if isinstance(child, FUNCTIONS):
                    inside = child if where is None else where
                    span, called = (child.body[0].lineno, child.end_lineno or 0), ""
                elif isinstance(child, ast.stmt):
                    body = getattr(child, "body", None)
                    last = body[0].lineno - 1 if body else child.end_lineno or 0
                    span = (child.lineno, max(child.lineno, last))
                    target = getattr(child, "target", None) or [*getattr(child, "targets", "")][:1]
                    target = target[0] if isinstance(target, list) and target else target
                    called = "" if where or not isinstance(target, ast.Name) else target.id
                yield from visit(child, inside, span, called)

    yield from visit(ast.parse(raw), None, (1, 10**6), "")


def skipped(node: ast.AST) -> bool:
    """Tell whether a part of the code is left alone."""
    match node:
        case ast.Raise() | ast.JoinedStr() | ast.Assert() | ast.Import() | ast.ImportFrom():
            return True
        case ast.FunctionDef(name="__repr__"):
            return True
        case ast.Call(func=called):
            return ast.unparse(called) in ("warnings.warn", "dataclass")
        case ast.Assign(targets=[ast.Name(id=name)]):
            return name.startswith("__")
    return False


class Touched:
    """A plugin that notes the time of each test, and which lines and kernels it runs."""

    def __init__(self, coverage: Any) -> None:
        self.coverage, self.test = coverage, ""
        self.seconds: dict[str, float] = {}
        self.kernels: defaultdict[str, set[str]] = defaultdict(set)

    def pytest_configure(self) -> None:
        from caltest._base.compiled import kernel

        call: Any = kernel.__call__

        def noted(called: Any, *args: Any) -> Any:
            code = called.py_func
            path = code.__module__.replace(".", "/").removeprefix("caltest/") + ".py"
            self.kernels[f"{path}:{code.__name__}"].add(self.test)
            return call(called, *args)

        kernel.__call__ = noted  # type: ignore[method-assign]

    def pytest_runtest_logstart(self, nodeid: str) -> None:
        self.test = nodeid
        self.coverage.switch_context(nodeid)

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.passed:
            self.seconds[report.nodeid] = self.seconds.get(report.nodeid, 0.0) + report.duration


class Asked:
    """A plugin that runs the tests named, in that order, and ends the process at a failure."""

    def __init__(self, tests: list[str], answer: Path) -> None:
        self.rank = {test: i for i, test in enumerate(tests)}
        self.answer = answer

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        wanted = [item for item in items if item.nodeid in self.rank or not self.rank]
        items[:] = sorted(wanted, key=lambda item: self.rank.get(item.nodeid, 0))

    def pytest_runtest_logreport(self, report: Any) -> None:
        if report.failed:
            self.answer.write_text(report.nodeid)
            os._exit(1)


class Coverage:
    """Which tests run which lines and kernels, and how long they take."""

    def __init__(self, folder: Path) -> None:
        from coverage.numbits import numbits_to_nums

        noted = json.loads((folder / "tests.json").read_text())
        self.seconds: dict[str, float] = noted["seconds"]
        self.kernels = {key: set(tests) for key, tests in noted["kernels"].items()}
        self.breadth: defaultdict[str, int] = defaultdict(int)
        self.lines: dict[str, defaultdict[int, set[str]]] = {}
        rows = sqlite3.connect(folder / "coverage").execute(
            "select path, context, numbits from line_bits join file on file.id = file_id"
            " join context on context.id = context_id where context != ''"
        )
        for path, test, bits in rows:
            lines = self.lines.setdefault(path.rsplit("/caltest/", 1)[1], defaultdict(set))
            numbers = numbits_to_nums(bits)
            self.breadth[test] += len(numbers)
            for number in numbers:
                lines[number].add(test)

    def tests(self, mutant: Mutant) -> list[str]:
        """Return the tests of a mutant, those that run little else first, file by file."""
        of_line = self.lines.get(mutant.module, {})
        low, high = mutant.lines
        if mutant.kernel:
            start = mutant.module + ":" + mutant.kernel.replace("*", "")
            sets = [self.kernels[key] for key in self.kernels if key.startswith(start)]
        elif mutant.name:
            word = re.compile(rf"\b{mutant.name}\b".encode())
            sets = [
                lines.get(i, set())
                for module, lines in self.lines.items()
                for i, text in enumerate((ROOT / "caltest" / module).read_bytes().splitlines(), 1)
                if word.search(text)
            ]
        else:
            sets = [tests for line, tests in of_line.items() if low <= line <= high]
        found = set().union(*sets) or set().union(*of_line.values())
        by_file = defaultdict(list)
        for test in sorted(found & set(self.seconds), key=lambda test: (self.breadth[test], test)):
            by_file[test.partition("::")[0]].append(test)
        ranks = {test: i for tests in by_file.values() for i, test in enumerate(tests)}
        return sorted(ranks, key=lambda test: (ranks[test], self.breadth[test]))


def child(house: Path, module: str, tests: list[str], answer: Path, cpu: int) -> int:
    """Import the changed module and run tests on it; return the exit status of the process."""
    answer.unlink(missing_ok=True)
    sys.stdout.flush()
    pid = os.fork()
    if pid == 0:
        resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 1))
        signal.alarm(5 * cpu)
        null = os.open(os.devnull, os.O_RDWR)
        for stream in range(3):
            os.dup2(null, stream)
        status = 3
        try:
            os.chdir(house)
            dotted = "caltest." + module.removesuffix(".py").replace("/", ".")
            importlib.import_module(dotted.removesuffix(".__init__"))
            import pytest
            from hypothesis import Phase, settings

            once = (Phase.explicit, Phase.generate)
            settings.register_profile(
                "unshrunk", derandomize=True, deadline=None, max_examples=40, phases=once
            )
            files = sorted({test.partition("::")[0] for test in tests})
            status = pytest.main([*OPTIONS, *files], plugins=[Asked(tests, answer)])
        finally:
            os._exit(status)
    return os.waitpid(pid, 0)[1]


OPTIONS = ["-q", "-n", "0", "-p", "no:cacheprovider", "--assert=plain"]
OPTIONS += ["--continue-on-collection-errors", "--hypothesis-profile=unshrunk"]


def tried(house: Path, mutant: Mutant, stages: list[tuple[list[str], int]]) -> dict[str, Any]:
    """Return how a mutant ends: who noticed it, whether it runs at all, and the tests asked."""
    path = house / "caltest" / mutant.module
    raw, stamp = path.read_bytes(), path.stat()
    cache = path.parent / "__pycache__"
    compiled = {file: file.read_bytes() for file in cache.glob(f"{path.stem}.*.nb?")}
    answer = house / "answer"
    path.write_bytes(mutant.applied(raw))
    os.utime(path, (stamp.st_atime, stamp.st_mtime + random.randrange(10**3, 10**7)))
    outcome: dict[str, Any] = {"by": "", "asked": 0, "collected": True}
    try:
        for tests, cpu in stages:
            if not tests:
                continue
            status = child(house, mutant.module, tests, answer, cpu)
            outcome["asked"] += len(tests)
            if os.WIFSIGNALED(status):
                outcome["by"] = "time"
            elif os.WEXITSTATUS(status) == 3:
                return {}
            elif answer.exists():
                outcome["by"] = answer.read_text()
            elif os.WEXITSTATUS(status):
                outcome["collected"] = False
            if outcome["by"]:
                break
    finally:
        path.write_bytes(raw)
        os.utime(path, (stamp.st_atime, stamp.st_mtime))
        for file in cache.glob(f"{path.stem}.*.nb?"):
            file.unlink()
        for file, code in compiled.items():
            file.write_bytes(code)
    return outcome


def run(folder: Path, house: Path, seed: int, count: int) -> None:
    """Try the mutants that are not in the file yet, and write a line of JSON for each."""
    coverage = Coverage(folder)
    modules = sorted(str(file.relative_to(ROOT / "caltest")) for file in ROOT.glob("caltest/**/*.py"))
    places = [place for module in modules for place in mutants_of(module)]
    print(f"{len(places)} places", flush=True)
    for name in HEAVY.split():
        with suppress(ImportError):
            importlib.import_module(name)
    done = {entry["mutant"] for entry in entries(folder)}
    for number in sorted(set(range(count)) - done):
        outcome: dict[str, Any] = {}
        for attempt in range(99):
            generator = random.Random(f"{seed}-{number}-{attempt}")
            mutant = generator.choice(generator.choice(places))
            tests = coverage.tests(mutant)
            nearest = [test for test in tests if coverage.seconds[test] < 5][:40]
            nearest.sort(key=lambda test: round(coverage.seconds[test], 1))
            others = [test for test in tests if test not in set(nearest)]
            total = np.cumsum([coverage.seconds[test] for test in others])
            others = others[: int(np.searchsorted(total, OTHERS))]
            outcome = tried(house, mutant, [(nearest, CPU), (others, LONGER)])
            if outcome:
                break
        raw = (ROOT / "caltest" / mutant.module).read_bytes()
        was, became = (text.splitlines()[mutant.line - 1].decode().strip() for text in (raw, mutant.applied(raw)))
        entry = {"mutant": number, "module": mutant.module, "line": mutant.line, "was": was, "became": became}
        entry |= {"tests": len(tests), **outcome, "attempt": attempt}
        with (folder / "mutants.jsonl").open("a") as file:
            file.write(json.dumps(entry, ensure_ascii=False) + "\n")
        print(number, outcome["by"] or "SURVIVED", f"{mutant.module}:{mutant.line}", became, flush=True)


def entries(folder: Path) -> list[dict[str, Any]]:
    """Return the mutants tried so far."""
    file = folder / "mutants.jsonl"
    return [json.loads(line) for line in file.read_text().splitlines()] if file.exists() else []


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("verb")
    parser.add_argument("folder", type=Path)
    parser.add_argument("house", type=Path)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--seed", type=int, default=20190416)
    o = parser.parse_args()
    os.environ["PYTHONPATH"] = str(o.house)
    sys.path.insert(0, str(o.house))
    sys.dont_write_bytecode = True
    run(o.folder, o.house, o.seed, o.count)
