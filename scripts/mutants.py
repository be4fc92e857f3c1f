"""Do the tests notice a wrong operator or constant in the arithmetic? A mutation study.

One change is made in a copy of the package (+ for −, < for ≤, a constant moved, min for max, …),
and the fast tests of that module run until one fails. ``python scripts/mutants.py --resume FILE``
draws mutants by their number from a seed, writes a line of JSON for each as it ends, and goes on
where it was; ``--show`` lists the survivors.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
#: Tests that ought to notice changes, the likeliest first, by the longest beginning of a module.
TESTS = {
    "": "invariants/test_invariants statistics invariants inference",
    "_base/": "io statistics invariants results inference/test_copies inference/test_resolution",
    "_base/features": "segments io",
    "_base/multiplicity": "inference/test_multiplicity statistics inference/test_comparison",
    "_base/poisson_binomial": "statistics/test_exact reliability inference",
    "bets/": "sequential invariants statistics tally/test_tally_time",
    "cli/": "cli io",
    "examples": "io docs statistics",
    "inference/": "inference invariants",
    "inference/cell_noise": "inference/test_[bi] inference/test_[cdw] invariants",
    "inference/inter": "inference/test_[bi] inference/test_[cdw] invariants",
    "inference/inversion": "inference/test_[bi] invariants",
    "inference/pair": "inference/test_reach inference/test_comparison invariants",
    "inference/reach": "inference/test_reach inference/test_comparison invariants",
    "inference/squared_error": "inference/test_[rci] inference/test_bounds",
    "io/": "io cli",
    "io/grades": "inference/test_grades io cli",
    "planning/": "reports statistics cli inference",
    "plots/": "plots reports cli docs results",
    "predictions": "io statistics/test_lenses invariants recalibration",
    "problem/": "invariants tally statistics inference",
    "recalibration/": "recalibration adapters inference",
    "reliability/": "reliability tally plots invariants",
    "segments/": "segments reports cli",
    "reports/": "reports results cli invariants/test_attacks",
    "results/": "results reports inference cli",
    "sequential/": "sequential tally/test_tally_time cli/test_cli_monitor invariants",
    "simulate/": "simulate invariants statistics inference/test_[cdw] tally",
    "sklearn": "adapters",
    "statistics/": "statistics invariants inference/test_[bi]",
    "tables/": "io results statistics cli",
    "tally/": "tally invariants cli",
    "torch": "adapters",
    "tracking": "adapters",
}
#: What the tests read: without it they would fail, and every mutant seem to be noticed.
PARTS = ("caltest", "tests", "validation", "docs", "paper", "paper_replications", "scripts")
PARTS += ("conda", "action.yml", "CITATION.cff", "pyproject.toml", "README.md")
OPERATORS = {
    ast.Add: "-", ast.Sub: "+", ast.Mult: "/", ast.Div: "*", ast.FloorDiv: "*", ast.Pow: "*",
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.And: "or", ast.Or: "and",
}  # fmt: skip
WRITTEN = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Pow: "**",
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
    ast.And: "and", ast.Or: "or",
}  # fmt: skip
NAMES = {"min": "max", "max": "min", "minimum": "maximum", "maximum": "minimum"}
Change = tuple[int, int, str]
#: Mutants that change no number: module, a part of the line as it became → why.
EQUIVALENT = {
    ("statistics/debiased.py", "np.maximum(sigma, 1e-300), 60.25"): "erf and exp end before 40",
    ("inference/inversion.py", "np.maximum(sigma, 1e-300), 60.25"): "erf and exp end before 40",
    ("_base/reading.py", "deviation.max() >= tolerance"): "at the border the sum is accepted, too",
    ("simulate/labels.py", "else sums[:, :1], axis=1"): "an order that is not used",
    ("simulate/labels.py", "k += thresholds[i, k] < draw"): "the loop below takes that step",
    ("simulate/labels.py", "k += thresholds[first + i, k] < draw"): "the loop below does",
    ("exact.py", "[: a.size + b.size + 1], 0.0, None)"): "rounding beyond the end, cut in any case",
    ("inference/interval_methods.py", "np.minimum(rise, 1.75)), 0.0)"): "not taken above 1",
    ("inference/pair.py", "if found.value <= 0.0 else (b"): "equal errors have p = 1 either way",
    ("nulls.py", "np.append(self.tail[1:], 0.0), 0.0, 1.75)"): "1 less a probability is below 1",
    ("inference/pair.py", "if found.pvalue(lone=False) < 1.0"): "a p-value that is the level",
    ("_base/poisson_binomial.py", "group[0] >= 0.75"): "the law is the same either way",
    ("inference/cell_noise.py", "int(rng.integers(2*63))"): "a seed like any other",
    (
        "statistics/debiased.py",
        "np.maximum(divisor, 1)), 0.25)",
    ): "a single row has no pairs to weigh",
    ("reports/verdicts.py", "if gap >= 0 else"): "a gap of 0 is no half of an error",
    ("plots/reliability.py", "ls=DASHED, lw=1.75)"): "the width of a line",
    ("statistics/kernel/tiles.py", "IN_MEMORY = 3**24"): "sums of tiles are tested at 0, too",
}


def modules() -> list[str]:
    """Return the modules whose arithmetic is changed: all of the package."""
    found = (ROOT / "caltest").rglob("*.py")
    return sorted(str(path.relative_to(ROOT / "caltest")) for path in found)


def tests_of(name: str, house: Path) -> list[str]:
    """Return the files of tests that ought to notice, those of a similar name first."""
    globs = TESTS[max((start for start in TESTS if name.startswith(start)), key=len)].split()
    places = (place for glob in globs for place in sorted((house / "tests").glob(f"{glob}*")))
    files = (file for place in places for file in sorted({place, *place.glob("test_*.py")}))
    found = dict.fromkeys(file for file in files if file.suffix == ".py")
    words = [word[:5] for word in re.findall("[a-z]{4,}", name.removesuffix(".py"))]
    return [*map(str, sorted(found, key=lambda file: not any(w in file.stem for w in words)))]


def equivalent(entry: dict[str, Any]) -> bool:
    """Tell whether a survivor is judged to change no number."""
    return any(entry["module"] == module and part in entry["became"] for module, part in EQUIVALENT)


def changes(source: str) -> list[Change]:
    """Return every change: where its text begins and ends, and what it becomes."""
    starts = [0]
    for line in source.encode().splitlines(keepends=True):
        starts.append(starts[-1] + len(line))
    raw = source.encode()

    def at(line: int, column: int) -> int:
        return starts[line - 1] + column

    def between(left: ast.expr, right: ast.expr, operator: ast.AST) -> Iterator[Change]:
        kind = type(operator)
        if kind not in OPERATORS:
            return
        low = at(left.end_lineno or 0, left.end_col_offset or 0)
        found = raw.find(WRITTEN[kind].encode(), low, at(right.lineno, right.col_offset))
        if found >= 0:
            yield found, found + len(WRITTEN[kind]), OPERATORS[kind]

    def of(node: ast.AST) -> Iterator[Change]:
        if isinstance(node, ast.BinOp):
            yield from between(node.left, node.right, node.op)
        elif isinstance(node, ast.Compare):
            for left, operator, right in zip(
                [node.left, *node.comparators], node.ops, node.comparators, strict=False
            ):
                yield from between(left, right, operator)
        elif isinstance(node, ast.BoolOp):
            for left, right in zip(node.values, node.values[1:], strict=False):
                yield from between(left, right, node.op)
        elif isinstance(node, ast.Constant) and type(node.value) in (int, float):
            new = node.value + 1 if isinstance(node.value, int) else node.value * 1.5 + 0.25
            low = at(node.lineno, node.col_offset)
            yield low, at(node.end_lineno or 0, node.end_col_offset or 0), repr(new)
        elif isinstance(node, ast.Name | ast.Attribute):
            name = node.id if isinstance(node, ast.Name) else node.attr
            if name in NAMES:
                end = at(node.end_lineno or 0, node.end_col_offset or 0)
                yield end - len(name), end, NAMES[name]

    tree = ast.parse(source)
    for node in ast.walk(tree):  # types, messages and the text of errors are no arithmetic
        if isinstance(node, ast.FunctionDef):
            node.returns = None
            for argument in (*node.args.args, *node.args.kwonlyargs):
                argument.annotation = None
        elif isinstance(node, ast.AnnAssign):
            node.annotation = ast.Constant(None)
        elif isinstance(node, ast.Raise | ast.JoinedStr):
            for name, value in ast.iter_fields(node):
                if isinstance(value, list):
                    setattr(node, name, [])
                elif isinstance(value, ast.AST):
                    setattr(node, name, None)
    found = {change for node in ast.walk(tree) for change in of(node)}
    return sorted(found)


def mutant(number: int, seed: int) -> tuple[str, Change]:
    """Return the module and the change of a mutant; modules in proportion to their changes."""
    places = [
        (name, change)
        for name in modules()
        for change in changes((ROOT / "caltest" / name).read_text(encoding="utf-8"))
    ]
    return random.Random(f"{seed}-{number}").choice(places)


def survives(name: str, change: Change, house: Path, seconds: float, first: int) -> bool:
    """Run the fast tests on a copy of the package with the change; a hang counts as noticed."""
    path = house / "caltest" / name
    original = (ROOT / "caltest" / name).read_bytes()
    low, high, new = change
    path.write_bytes(original[:low] + new.encode() + original[high:])
    tests = tests_of(name, house)[:first]
    command = [sys.executable, "-m", "pytest", "-x", "-q", "-n", "0", "-p", "no:cacheprovider"]
    try:
        run = subprocess.run(
            [*command, *tests], cwd=house, capture_output=True, timeout=seconds,
            env={**os.environ, "PYTHONPATH": str(house)}, check=False,
        )  # fmt: skip
        return run.returncode == 0
    except subprocess.TimeoutExpired:
        return False
    finally:
        path.write_bytes(original)


def described(number: int, name: str, change: Change) -> dict[str, object]:
    """Say where a mutant is: module, line, and the line before and after."""
    raw = (ROOT / "caltest" / name).read_bytes()
    low, high, new = change
    line = raw[:low].count(b"\n") + 1
    begin, end = raw.rfind(b"\n", 0, low) + 1, raw.find(b"\n", high)
    before = raw[begin:end].decode().strip()
    after = (raw[begin:low] + new.encode() + raw[high:end]).decode().strip()
    return {"mutant": number, "module": name, "line": line, "was": before, "became": after}


def main() -> None:
    """Run the mutants that are not yet in the file, and say how many were noticed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--resume", type=Path, default=Path("mutants.jsonl"))
    parser.add_argument("--mutants", type=int, default=200)
    parser.add_argument("--seed", type=int, default=20190416)
    parser.add_argument("--seconds", type=float, default=900.0, help="after which a run hangs")
    parser.add_argument("--first", type=int, default=99, help="files of tests, the likeliest ones")
    parser.add_argument("--show", action="store_true", help="list survivors, run nothing")
    parser.add_argument("--again", action="store_true", help="run the survivors once more")
    options = parser.parse_args()
    lines = options.resume.read_text().splitlines() if options.resume.exists() else []
    done = {entry["mutant"]: entry for entry in map(json.loads, lines)}
    again = {n for n, entry in done.items() if entry["survived"] and not equivalent(entry)}
    again = again if options.again else set()
    with tempfile.TemporaryDirectory() as folder:
        house = Path(folder)
        if not options.show:
            for part in PARTS:
                copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
                copy(ROOT / part, house / part)
        for number in range(0 if options.show else options.mutants):
            if number in done and number not in again:
                continue
            name, change = mutant(number, options.seed)
            entry = described(number, name, change)
            entry["survived"] = survives(name, change, house, options.seconds, options.first)
            with options.resume.open("a") as file:
                file.write(json.dumps(entry, ensure_ascii=False) + "\n")
            done[number] = entry
            print(f"{number}: {'SURVIVED' if entry['survived'] else 'noticed'} {name}", flush=True)
    alive = [entry for entry in done.values() if entry["survived"]]
    for entry in alive:
        judged = " (changes no number)" if equivalent(entry) else ""
        print(f"{entry['module']}:{entry['line']}{judged}\n  {entry['was']}\n  {entry['became']}")
    same = sum(map(equivalent, alive))
    noticed = len(done) - len(alive)
    print(f"{noticed} of {len(done) - same} mutants were noticed; {same} more change no number")


if __name__ == "__main__":
    main()
