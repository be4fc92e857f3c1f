"""Record the reading calls of the tests of a tree, and compare what another tree makes of them.

``python scripts/reading_calls.py record TREE FOLDER`` runs the tests of a checkout that read files,
and keeps every call of ``read_predictions``, also those made by a command: the files by their
content, the arguments, and the outcome as digests. ``python scripts/reading_calls.py compare FOLDER
PAGE`` repeats the calls with the package on the path, follows the command that a refusal prints,
and writes the table of what became of them. The record is rebuilt, never committed.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import subprocess
import sys
import warnings
from collections import Counter
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

#: Folders of tests that read files, before and after the rooms were moved; documentation.
TESTS = ("tests/io", "tests/read", "tests/cli", "tests/docs", "tests/inference/test_followup.py")
#: Calls of one test that are kept: fuzzing makes hundreds of one kind.
MOST = 40
#: Characters of a message that are kept, and digits to which probabilities are compared.
SHOWN, DIGITS = 240, 10


# ------------------------------------------------------------------------------
# What came of a call.


def digest(values: Any) -> str:
    """Return a hash of an array, of numbers to ten digits."""
    array = np.asarray(values)
    if array.dtype.kind == "f":
        array = np.round(array, DIGITS) + 0.0
    data = array.tobytes() if array.dtype.kind in "fiub" else "\0".join(map(str, array.ravel()))
    data = data if isinstance(data, bytes) else data.encode()
    return hashlib.sha256(data).hexdigest()[:16]


def parts(data: Any) -> dict[str, Any]:
    """Return what was read as sizes and digests: probabilities, labels, facts by name."""
    facts = {}
    for name in ("weights", "clusters", "crossed", "by", "ids", "folds", "times", "horizon"):
        values = getattr(data, name, None)
        if values is not None:
            facts[name] = digest(np.unique(values, return_inverse=True)[1].astype(np.int64))
    if getattr(data, "followup", None) is not None:
        facts["followup"] = digest(data.followup.status.astype(np.int64))
    classes = None if data.classes is None else list(data.classes)
    read = {"n": data.n, "k": data.n_classes, "classes": classes, "facts": facts}
    return read | {"probs": digest(data.probs), "labels": digest(data.labels.astype(np.int64))}


def outcome(call: Callable[[], Any]) -> tuple[dict[str, Any], Any]:
    """Return what a call comes to, and the data or the error."""
    try:
        with warnings.catch_warnings(action="ignore"):
            data = call()
    except Exception as error:
        kind = type(error).__name__
        return {"error": kind, "message": str(error)[:SHOWN]}, error
    return parts(data), data


# ------------------------------------------------------------------------------
# The plug-in for pytest that records.


class Recorder:
    """Plug-in that keeps every call of ``read_predictions`` and the files that it is about."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.calls, self.test = folder, dict[str, Any](), ""
        self.count: Counter[str] = Counter()
        (folder / "files").mkdir(parents=True, exist_ok=True)

    def pytest_configure(self) -> None:
        """Put the recorder in the place of the function, before tests import it."""
        import caltest

        self.read = caltest.read_predictions
        for module in (caltest, sys.modules[self.read.__module__]):
            module.read_predictions = self  # type: ignore[attr-defined]

    def pytest_runtest_setup(self, item: Any) -> None:
        """Remember which test runs."""
        self.test = item.nodeid

    def pytest_sessionfinish(self) -> None:
        """Write the record."""
        text = json.dumps([*self.calls.values()], indent=1, ensure_ascii=False, default=str)
        (self.folder / "calls.json").write_text(text, encoding="utf-8")

    def __call__(self, path: Any, *columns: Any, **options: Any) -> Any:
        """Read, and record the call before its files change."""
        listed = path if isinstance(path, (list, tuple)) else [path]
        label = columns[1] if len(columns) > 1 else options.get("label")
        paths = [p for one in listed for p in _matching(one)]
        second = _matching(label) if isinstance(label, (str, Path)) else []
        files = [self._kept(p) for p in paths]
        given = dict(zip(("probs", "label"), columns, strict=False)) | options
        given = {name: value for name, value in given.items() if value not in (None, False, ())}
        if second:
            given["label"] = {"file": self._kept(second[0])}
        entry = {"test": self.test, "files": files, "options": given}
        key = json.dumps([files, given], default=str, sort_keys=True)
        known = key in self.calls or not files or self.count[self.test] >= MOST
        try:
            data = self.read(path, *columns, **options)
        except Exception as error:
            entry["outcome"] = outcome(_raising(error))[0]
            raise
        else:
            entry["outcome"] = parts(data)
            return data
        finally:
            if not known and "outcome" in entry:
                self.count[self.test] += 1
                self.calls[key] = entry

    def _kept(self, path: Path) -> list[str]:
        """Keep a file by its content; return its name and its hash."""
        content = path.read_bytes()
        name = hashlib.sha256(content).hexdigest()
        kept = self.folder / "files" / name
        if not kept.exists():
            kept.write_bytes(content)
        return [path.name, name]


def _raising(error: Exception) -> Callable[[], Any]:
    def call() -> Any:
        raise error

    return call


def _matching(path: Any) -> list[Path]:
    """Return the files that a path or a pattern names."""
    path = Path(path)
    if path.is_file():
        return [path]
    with contextlib.suppress(ValueError, OSError, NotImplementedError):
        return sorted(p for p in path.parent.glob(path.name) if p.is_file())
    return []


def record(tree: Path, folder: Path) -> int:
    """Run the tests of a tree that read files, with the recorder."""
    code = (
        f"import sys, pathlib; sys.path[:0] = [{str(tree)!r}, {str(Path(__file__).parent)!r}]\n"
        "import pytest, reading_calls\n"
        f"recorder = reading_calls.Recorder(pathlib.Path({str(folder.resolve())!r}))\n"
        "sys.exit(pytest.main(sys.argv[1:], plugins=[recorder]))"
    )
    words = ["-q", "-n", "0", "-p", "no:cacheprovider", *(t for t in TESTS if (tree / t).exists())]
    environment = os.environ | {"PYTHONPATH": f"{tree}{os.pathsep}{tree / 'tests'}"}
    run = subprocess.run([sys.executable, "-c", code, *words], cwd=tree, env=environment)
    return run.returncode


# ------------------------------------------------------------------------------
# What another tree makes of the calls.


#: Options that were ended by decision, and what they became.
ENDED = {
    "percent": "percentages are an expression, `p / 100`",
    "pos_label": "the event is an expression, `y = 'yes'`",
    "drop_labels": "rows are chosen by `where`",
    "one_model": "several models are asked about",
}
#: What is said of a refusal, by its message: the class that explains it.
REASONS = {
    "no column is known by its name": "names outside of the contract are not guessed",
    "could be": "two names of the contract: the user chooses",
    "an outcome is 0 or 1": "words and codes are no outcomes without an expression",
    "one column or expression, not": "outcomes in several columns are an expression",
    "a probability is at most 1": "percentages are an expression, `p / 100`",
    "how sure a model is": "a confidence needs the predicted class",
    "one class alone": "a column of one class alone is not read",
    "an event needs": "follow-up needs event, time and horizon",
    "a time needs": "follow-up needs event, time and horizon",
    "no number": "percent signs and marks among numbers are an expression",
    "has no value": "missing cells are few, or left out by `drop_missing`",
    "cannot be read": "damaged files",
    "neither a column nor": "expressions are SQL",
    "there is no column": "expressions are SQL",
    "classes": "classes are named in the order of the columns",
    "followed": "follow-up is asked about",
    "no column": "a horizon is a number in the unit of the time, or a column",
    "first line holds numbers": "a file without names of columns is refused",
    "line 1 has 1 cell": "titles above a table are refused",
    "the sheets": "of several sheets one is named",
    "cannot be computed": "expressions are SQL",
    "which are not numbers": "expressions are SQL: words stand in single quotes",
    "not a number": "marks among numbers are set by `NULLIF`",
    "is rarer where": "a guard asks: against the outcomes",
    "train": "a guard asks",
    "several": "a guard asks",
}


#: Refusals of before that are readings now, by their message.
ACCEPTED = {
    "names or counts": "options are trusted",
    "holds the probabilities": "options are trusted",
    "is_censored": "options are trusted; a guard asks for swapped censoring",
    "models": "guards look at rows and labels, not at names of models",
    "horizon=": "a horizon is in the unit of the time",
    "not a number but a class": "true and false are 1 and 0",
    "in one order and other prob": "rows of files with an id in common are doubted, not refused",
    "drop_labels": "missing outcomes are few",
    "no outcome": "missing outcomes are few",
}
#: Parts that differ by decision where both versions read.
DIFFERENT = {
    "test_outcomes_against_rounded": '`rounded` is "auto" in Python as in commands, with a note',
    "test_rows_without_a_group": "rows without a subgroup are kept as `(no value)`",
}


def again(call: dict[str, Any], folder: Path, scratch: Path) -> tuple[dict[str, Any], Any]:
    """Repeat a call with the package on the path."""
    import caltest

    def kept(name: str, mark: str, place: Path) -> Path:
        path = place / name
        path.write_bytes((folder / "files" / mark).read_bytes())
        return path

    for old in scratch.iterdir():
        old.unlink()
    paths = [kept(name, mark, scratch) for name, mark in call["files"]]
    options = dict(call["options"])
    if isinstance(options.get("label"), dict):
        options["label"] = str(kept(*options["label"]["file"], scratch))
    ended = sorted(options.keys() & ENDED)
    options = {name: value for name, value in options.items() if name not in ENDED}
    found, result = outcome(lambda: caltest.read_predictions(_one(paths), **options))
    return found | {"ended": ended, "given": options, "paths": paths}, result


def _one(paths: list[Path]) -> Any:
    return paths[0] if len(paths) == 1 else paths


def followed(found: dict[str, Any], error: Any, limit: int = 3) -> tuple[dict[str, Any], int]:
    """Follow the only complete reading of a refusal; return the outcome and the commands."""
    import caltest

    options, commands = dict(found["given"]), 1
    while isinstance(error, Exception) and commands <= limit:
        readings = getattr(error, "readings", ())
        if len(readings) != 1 or readings[0].when or not readings[0].complete or readings[0].verb:
            break
        options = {k: v for k, v in (options | readings[0].options).items() if v is not None}
        read = partial(caltest.read_predictions, _one(found["paths"]), **options)
        more, error = outcome(read)
        found, commands = found | {"error": None} | more, commands + 1
    return found, commands


def alike(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """Return the parts in which two readings differ, but how a class is called."""
    keys = ("n", "k", "probs", "labels", "facts")
    return [key for key in keys if old.get(key) != new.get(key)]


def judged(call: dict[str, Any], folder: Path, scratch: Path) -> tuple[str, str]:
    """Return what became of a call, and the class that explains it."""
    old = call["outcome"]
    first, result = again(call, folder, scratch)
    new, commands = followed(first, result)
    message = first.get("message", "")
    reason = next((why for words, why in REASONS.items() if words in message), "")
    reason = next((ENDED[name] for name in first["ended"]), reason)
    if "error" in old:
        if new.get("error"):
            return "refused, as before", ""
        why = next((why for words, why in ACCEPTED.items() if words in old["message"]), "")
        return "read, refused before", why or (
            f"the command that is printed: {reason}" if commands > 1 else f"? {old['message'][:90]}"
        )
    if first["ended"]:
        same = not new.get("error") and not alike(old, new)
        return ("same" if same else "dropped by decision"), "" if same else reason
    if new.get("error"):
        return "refused", reason or f"? {message[:120]}"
    if alike(old, new):
        test = call["test"].rpartition("::")[2]
        why = next((why for words, why in DIFFERENT.items() if test.startswith(words)), "")
        return "different by decision" if why else "DIFFERENT", why or f"? {test}"
    return ("same", "") if commands == 1 else (f"command {commands}", reason)


def compare(folder: Path, page: Path) -> int:
    """Write the table of what became of the recorded calls."""
    import tempfile

    calls = json.loads((folder / "calls.json").read_text(encoding="utf-8"))
    counts: Counter[tuple[str, str]] = Counter()
    with tempfile.TemporaryDirectory() as scratch:
        for call in calls:
            counts[judged(call, folder, Path(scratch))] += 1
    totals: Counter[str] = Counter()
    for (what, _), n in counts.items():
        totals[what] += n
    lines = [HEAD.format(len(calls)), "| what became of it | calls |", "|---|--:|"]
    lines += [f"| {what} | {n} |" for what, n in totals.most_common()]
    lines += ["", "## Why", "", "| what became of it | explained by | calls |", "|---|---|--:|"]
    lines += [f"| {a} | {b} | {n} |" for (a, b), n in sorted(counts.items()) if b]
    page.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return 0


HEAD = """# Reading calls before and after the contract

{} calls of `read_predictions`, of tests and commands of the version before, each with its file,
repeated with this version. A command is followed where a refusal offers one complete reading
without a condition. `python scripts/reading_calls.py` records and repeats the calls, and writes
this page.
"""


if __name__ == "__main__":
    verb, *paths = sys.argv[1:]
    sys.exit({"record": record, "compare": compare}[verb](*map(Path, paths)))
