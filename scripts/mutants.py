"""Do the tests notice a small change of the package? A mutation study.

``cover [TEST …]`` runs the fast tests once, or those named, and notes which lines and kernels each
of them runs. ``run [ROOM …]`` draws mutants by their number from a seed, every place alike: an
operator, a number or a flag, a bound of a slice, a ``not``, min for max, an assignment to a part
left out; with rooms, numbers whose mutant lies elsewhere are passed over. Each is tried in a copy
of the package by the 40 tests nearest to its line, and a survivor by others of that line; mutants
that cannot be imported are drawn again. ``again TEST …`` tries the survivors with tests of this
tree, and ``show`` lists what is left, with what was judged of it. All is kept in ``--folder``, and
goes on where it was. Left alone are messages, ``__repr__``, annotations, options of ``dataclass``,
and numbers and flags in ``plots/``: how a picture looks.
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
import tempfile
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
UNRUN = 99  # the status of a process whose module cannot be imported
OTHERS = 40.0  # seconds that the others take in all
#: Survivors that change no answer: the beginning of a module, a part of the line as it became.
JUDGED = {
    ("", "repr=True"): "how a value prints",
    ("", "kw_only=False"): "how a value is made",
    ("recalibration.py", "AIM, GRADIENT = -0.9"): "the optimiser ends at its last digit",
    ("plots/panels.py", "(u >= 0.0 > v)"): "a corner drawn twice",
    ("plots/", "mass >= 1e-6"): "a border that no mass meets",
    ("plots/", "if p < alpha"): "a border that no p-value meets",
    ("monitoring/monitor.py", "self.n + 1.0, 1.0]"): "the kernel writes there",
    ("inference/segments.py", "LAST = 31.0"): "predictions are 0 or 1 before",
    ("inference/lattice.py", "OF_NORMAL = 8.0 * 3.0"): "less is passed over",
    ("inference/lattice.py", "data, stack=4)"): "the line that a warning names",
    ("inference/null.py", "places.size < FEW_VALUES"): "either way of adding up gives the law",
    ("inference/null.py", "offsets is None and unit is None"): "both are None together",
    ("inference/reliability.py", "reshape(2, -2)"): "any negative size is the one left",
    ("inference/", "max() >= SEPARATED"): "a border that no data meet",
    ("tallies/clustered.py", "stack: int = 4"): "the line that a warning names",
    ("tallies/problems.py", "self.tally.cluster] / self"): "only their squares are asked for",
    ("tallies/problems.py", "law.size // 3"): "tails of e⁻²⁰, which no draw of a test reaches",
}
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

    def described(self) -> dict[str, Any]:
        """Say where a mutant is: module, line, and the line before and after."""
        raw = (ROOT / "caltest" / self.module).read_bytes()
        was, became = (text.splitlines()[self.line - 1] for text in (raw, self.applied(raw)))
        lines = {"was": was.decode().strip(), "became": became.decode().strip()}
        return {"module": self.module, "line": self.line, **lines}


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
                pairs = [
                    (a, node.op, b) for a, b in zip(node.values, node.values[1:], strict=False)
                ]
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
    """A plugin that notes the time of each test, and which lines and kernels it runs.

    Of each test function at most ``most`` sets of parameters are run, spread over all of them.
    """

    def __init__(self, coverage: Any, most: int) -> None:
        self.coverage, self.most, self.test = coverage, most, ""
        self.seconds: dict[str, float] = {}
        self.kernels: defaultdict[str, set[str]] = defaultdict(set)

    def pytest_configure(self) -> None:
        from caltest.nulls.lanes import kernel

        call: Any = kernel.__call__

        def noted(called: Any, *args: Any) -> Any:
            code = called.py_func
            path = code.__module__.removeprefix("caltest.").replace(".", "/") + ".py"
            self.kernels[f"{path}:{code.__name__}"].add(self.test)
            return call(called, *args)

        kernel.__call__ = noted  # type: ignore[method-assign]

    def pytest_collection_modifyitems(self, items: list[Any]) -> None:
        functions: defaultdict[str, list[Any]] = defaultdict(list)
        for item in items:
            functions[item.nodeid.partition("[")[0]].append(item)
        items[:] = [
            tests[i]
            for tests in functions.values()
            for i in sorted({*np.linspace(0, len(tests) - 1, self.most).astype(int)})
        ]

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
        names = {item: {item.nodeid, item.nodeid.partition("::")[0]} for item in items}
        wanted = [item for item in items if names[item] & set(self.rank)]
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
        status = UNRUN
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


def tried(
    house: Path, module: str, mutated: bytes, stages: list[tuple[list[str], int]]
) -> dict[str, Any]:
    """Return how a mutant ends: who noticed it and how many tests ran, or nothing if it cannot."""
    path = house / "caltest" / module
    raw, stamp = path.read_bytes(), path.stat()
    cache = path.parent / "__pycache__"
    compiled = {file: file.read_bytes() for file in cache.glob(f"{path.stem}.*.nb?")}
    answer = house / "answer"
    path.write_bytes(mutated)
    os.utime(path, (stamp.st_atime, stamp.st_mtime + random.randrange(10**3, 10**7)))
    outcome: dict[str, Any] = {"by": "", "asked": 0}
    try:
        for tests, cpu in stages:
            if not tests:
                continue
            status = child(house, module, tests, answer, cpu)
            outcome["asked"] += len(tests)
            if os.WIFSIGNALED(status):
                outcome["by"] = "time"
            elif os.WEXITSTATUS(status) == UNRUN:
                return {}
            elif answer.exists():
                outcome["by"] = answer.read_text()
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


def cover(folder: Path, most: int, tests: list[str]) -> None:
    """Run the fast tests, or those of some files, and note what each of them runs."""
    import coverage
    import pytest

    measured = coverage.Coverage(folder / "coverage", include=["caltest/*"], config_file=False)
    touched = Touched(measured, most)
    with measured.collect():
        pytest.main(["-q", "-n", "0", "-p", "no:cacheprovider", *tests], plugins=[touched])
    measured.save()
    kernels = {key: sorted(tests) for key, tests in touched.kernels.items()}
    noted = {"seconds": touched.seconds, "kernels": kernels}
    (folder / "tests.json").write_text(json.dumps(noted))


def run(folder: Path, house: Path, seed: int, count: int, rooms: list[str]) -> None:
    """Try the mutants that are not in the file yet, or those of some rooms."""
    coverage = Coverage(folder)
    files = sorted((ROOT / "caltest").rglob("*.py"))
    modules = [str(file.relative_to(ROOT / "caltest")) for file in files]
    places = [place for module in modules for place in mutants_of(module)]
    for number in sorted(set(range(count)) - set(entries(folder))):
        for attempt in range(99):
            generator = random.Random(f"{seed}-{number}-{attempt}")
            mutant = generator.choice(generator.choice(places))
            if rooms and mutant.module.partition("/")[0] not in rooms:
                break
            tests = coverage.tests(mutant)
            nearest = [test for test in tests if coverage.seconds[test] < 5][:40]
            nearest.sort(key=lambda test: round(coverage.seconds[test], 1))
            others = [test for test in tests if test not in set(nearest)]
            total = np.cumsum([coverage.seconds[test] for test in others])
            others = others[: int(np.searchsorted(total, OTHERS))]
            mutated = mutant.applied((ROOT / "caltest" / mutant.module).read_bytes())
            outcome = tried(house, mutant.module, mutated, [(nearest, CPU), (others, LONGER)])
            if outcome:
                keep(folder, {"mutant": number, **mutant.described(), **outcome})
                break


def again(folder: Path, house: Path, tests: list[str]) -> None:
    """Try the survivors once more, by tests of this tree, where their line is still there."""
    for entry in entries(folder).values():
        path = ROOT / "caltest" / entry["module"]
        lines = path.read_text(encoding="utf-8").split("\n") if path.exists() else []
        there = [i for i, line in enumerate(lines, 1) if line.strip() == entry["was"]]
        if entry["by"] or judgement(entry) or not there:
            continue
        i = min(there, key=lambda i: abs(i - entry["line"])) - 1
        lines[i] = lines[i].replace(entry["was"], entry["became"])
        outcome = tried(house, entry["module"], "\n".join(lines).encode(), [(tests, LONGER)])
        if outcome["by"]:
            keep(folder, entry | outcome | {"first": False})


def entries(folder: Path) -> dict[int, dict[str, Any]]:
    """Return the mutants tried so far, by number."""
    file = folder / "mutants.jsonl"
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    return {entry["mutant"]: entry for entry in map(json.loads, lines)}


def keep(folder: Path, entry: dict[str, Any]) -> None:
    """Write down how a mutant ended."""
    with (folder / "mutants.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(entry, ensure_ascii=False) + "\n")
    place = f"{entry['module']}:{entry['line']}"
    print(entry["mutant"], entry["by"] or "SURVIVED", place, entry["became"], flush=True)


def judgement(entry: dict[str, Any]) -> str:
    """Return why a survivor changes no answer, or nothing."""
    texts = (why for (module, part), why in JUDGED.items()
             if entry["module"].startswith(module) and part in entry["became"])  # fmt: skip
    return next(texts, "")


def show(folder: Path) -> None:
    """Print the survivors and what was judged of them, and how many were noticed."""
    every = entries(folder).values()
    alive = [entry for entry in every if not entry["by"]]
    for entry in alive:
        print(f"{entry['module']}:{entry['line']} ({judgement(entry) or 'SURVIVED'})")
        print(f"  {entry['was']}\n  {entry['became']}")
    same = sum(bool(judgement(entry)) for entry in alive)
    first = sum(bool(entry["by"]) and entry.get("first", True) for entry in every)
    print(f"{len(every)} mutants: {same} change no answer; of the others {first} were noticed at ")
    print(f"first, and {len(every) - len(alive)} after tests were added")


def main() -> None:
    """Run one part of the study."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("part", choices=("cover", "run", "again", "show"))
    parser.add_argument("tests", nargs="*")
    parser.add_argument("--folder", type=Path, default=Path("mutants"))
    parser.add_argument("--mutants", type=int, default=300)
    parser.add_argument("--seed", type=int, default=20190416)
    parser.add_argument("--most", type=int, default=40, help="cover: cases of a test function")
    o = parser.parse_args()
    o.folder.mkdir(exist_ok=True)
    if o.part in ("cover", "show"):
        return cover(o.folder, o.most, o.tests) if o.part == "cover" else show(o.folder)
    with tempfile.TemporaryDirectory() as name:
        house = Path(name)
        for part in PARTS:
            copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
            copy(ROOT / part, house / part)
        os.environ["PYTHONPATH"] = name
        sys.path.insert(0, name)
        sys.dont_write_bytecode = True
        for module in HEAVY.split():
            with suppress(ImportError):
                importlib.import_module(module)
        if o.part == "run":
            run(o.folder, house, o.seed, o.mutants, o.tests)
        else:
            again(o.folder, house, o.tests)
    return None


if __name__ == "__main__":
    main()
