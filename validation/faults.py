"""Faults at points of progress: commands are stopped, disks fill, clocks go back.

``python -m validation.faults`` stops three commands at points spread over the calls that they make
of functions of caltest, by Ctrl-C, for want of memory and by SIGKILL in turn; makes each operation
on files fail in turn, with ENOSPC and EIO; and sets the clock back by an hour. After each fault
nothing but whole files may be there, and the command, run again, has to give the answer and the
files of a run without a fault. Counts are kept in ``--resume DIR``; ``python -m
validation.reliability`` writes the page.
"""

from __future__ import annotations

import argparse
import contextlib
import errno
import io
import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import polars as pl

from caltest import cli
from caltest._base import saving
from validation.study import MEASURED

SEED = 20261128
PACKAGE = str(Path(cli.__file__).parents[1])
#: The time of the last change of all data: 2020-09-13.
LONG_AGO = 1_600_000_000
#: Points at which each command is stopped, and every which of them is SIGKILL in a new process.
POINTS, KILLED = 70, 10


@dataclass(frozen=True)
class Subject:
    """A command that writes a file, in a folder of data.

    ``words`` are its arguments, ``first`` those of a run that goes before, ``file`` is the file
    that it writes and ``old`` its content before.
    """

    name: str
    words: tuple[str, ...]
    file: str
    first: tuple[str, ...] = ()
    old: str = ""


PAIR = ("--probs", "p", "--label", "y")
SUBJECTS = (
    Subject("scan", ("test", "part-*.parquet", *PAIR, "--resume", "sums.json"), "sums.json"),
    Subject(
        "monitor", ("monitor", "day2.csv", *PAIR, "--state", "S.json"), "S.json",
        first=("monitor", "day1.csv", *PAIR, "--state", "S.json"),
    ),
    Subject(
        "report", ("report", "day1.csv", *PAIR, "--out", "page.md"), "page.md",
        old="the page of yesterday",
    ),
)  # fmt: skip


def data(folder: Path) -> None:
    """Write the data of the commands, with times long past.

    States leave out the time of a file that was changed within two seconds, so that the first run
    on files just written could keep another state than the next one.
    """
    rng = np.random.default_rng(SEED)
    for name in ("part-1.parquet", "part-2.parquet", "part-3.parquet", "day1.csv", "day2.csv"):
        p = rng.random(300).round(4)
        rows = {"p": p, "y": (rng.random(300) < p**1.3).astype(int)}
        frame = pl.DataFrame({"case": np.arange(300) + rng.integers(10**6), **rows})
        path = folder / name
        frame.write_parquet(path) if path.suffix == ".parquet" else frame.write_csv(path)
        os.utime(path, (LONG_AGO, LONG_AGO))


def ran(folder: Path, words: tuple[str, ...]) -> tuple[int, str]:
    """Run a command in a folder; return its exit code and what it prints."""
    out = io.StringIO()
    before = Path.cwd()
    os.chdir(folder)
    try:
        with contextlib.redirect_stdout(out), contextlib.redirect_stderr(io.StringIO()):
            cli.main(list(words))
    except SystemExit as stop:
        return int(stop.code or 0), out.getvalue()
    finally:
        os.chdir(before)
    return 0, out.getvalue()


class Stop:
    """A profile function that raises at a call of a function of caltest, counted from 1."""

    def __init__(self, at: int, error: type[BaseException] | None) -> None:
        self.at, self.error, self.calls, self.where = at, error, 0, ""

    def __call__(self, frame: Any, event: str, argument: object) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(PACKAGE):
            self.calls += 1
            if self.calls == self.at:
                self.where = f"{frame.f_code.co_filename[len(PACKAGE) + 1 :]}:{frame.f_lineno}"
                sys.setprofile(None)
                if self.error is None:
                    os.kill(os.getpid(), signal.SIGKILL)
                else:
                    raise self.error

    def __enter__(self) -> Stop:
        sys.setprofile(self)
        return self

    def __exit__(self, *error: object) -> None:
        sys.setprofile(None)


# ------------------------------------------------------------------------------
# One fault, and what it may leave behind.


@contextlib.contextmanager
def prepared(subject: Subject) -> Iterator[Path]:
    """Yield a folder with the data, as it is before the command.

    The files are hard links to the same ones each time, as states know files by inode and time.
    """
    if not _KNOWN.get("data"):
        _KNOWN["data"] = tempfile.TemporaryDirectory()
        data(Path(_KNOWN["data"].name))
    source = Path(_KNOWN["data"].name)
    folder = source / "here"  # one path, as states hold it
    folder.mkdir()
    try:
        for file in source.iterdir():
            if file.is_file():
                os.link(file, folder / file.name)
        if subject.old:
            (folder / subject.file).write_text(subject.old)
        if subject.first:
            ran(folder, subject.first)
        yield folder
    finally:
        shutil.rmtree(folder)


def undisturbed(subject: Subject) -> tuple[set[bytes], tuple[int, str], bytes, set[str]]:
    """Return whole contents of the file, the answer, the last content, and names in the folder."""
    with prepared(subject) as folder:
        path = folder / subject.file
        whole = {path.read_bytes()} if path.exists() else set()
        answer = ran(folder, subject.words)
        return whole | {path.read_bytes()}, answer, path.read_bytes(), {*os.listdir(folder)}


def left(subject: Subject, folder: Path, names: set[str], whole: set[bytes]) -> str:
    """Return what a fault has left behind that should not be there, or ""."""
    path = folder / subject.file
    strange = {*os.listdir(folder)} - names
    if any(not name.startswith(".") for name in strange):
        return f"left {strange}"
    if path.exists() and path.read_bytes() not in whole:
        if subject.name != "scan":  # which keeps what it has counted so far
            return "the file is neither the old nor the new one"
        json.loads(path.read_bytes())
    return ""


def after(subject: Subject, fault: Callable[[Path], object], times: bool = False) -> str:
    """Return what is wrong after a fault and another run, or "".

    With ``times`` only the answer counts, as states hold the times of files.
    """
    whole, answer, last, names = undisturbed_of(subject)
    with prepared(subject) as folder:
        fault(folder)
        if not times and (wrong := left(subject, folder, names, whole)):
            return wrong
        if new_rows(ran(folder, subject.words)) != new_rows(answer):
            return "the next run answers otherwise"
        if not times and (folder / subject.file).read_bytes() != last:
            return "the file of the next run differs"
        locks = [name for name in os.listdir(folder) if name not in names]
        return "" if all(n.endswith((".tmp", "-lock")) for n in locks) else f"left {locks}"


def new_rows(answer: tuple[int, str]) -> tuple[int, str]:
    """Return an answer without the number of new rows, which is 0 if the fault came after them."""
    return answer[0], re.sub(r"\d+ new rows", "new rows", answer[1])


_KNOWN: dict[str, Any] = {}


def undisturbed_of(subject: Subject) -> Any:
    if subject.name not in _KNOWN:
        undisturbed(subject)  # kernels are compiled, modules imported
        _KNOWN[subject.name] = undisturbed(subject)
    return _KNOWN[subject.name]


def calls_of(subject: Subject) -> int:
    """Return how many calls of functions of caltest a command makes."""
    undisturbed_of(subject)
    with prepared(subject) as folder, Stop(0, None) as counted:
        ran(folder, subject.words)
    return counted.calls


def stopped(subject: Subject, at: int, error: type[BaseException]) -> str:
    """Return what is wrong after an exception at a call."""
    codes: list[int] = []

    def fault(folder: Path) -> None:
        with Stop(at, error):
            codes.append(ran(folder, subject.words)[0])

    try:
        wrong = after(subject, fault)
    except BaseException as raised:
        if isinstance(raised, KeyboardInterrupt) and error is not KeyboardInterrupt:
            raise
        return f"{type(raised).__name__} left the command"
    expected = 130 if error is KeyboardInterrupt else 70
    if not wrong and codes[0] not in (expected, 0, 2):
        return f"exit code {codes[0]}"
    return wrong


def killed(subject: Subject, at: int) -> str:
    """Return what is wrong after SIGKILL at a call, in a process of its own."""

    def fault(folder: Path) -> None:
        code = "from validation import faults; import sys; faults.killed_here(*sys.argv[1:])"
        words = [sys.executable, "-c", code, subject.name, str(folder), str(at)]
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join([PACKAGE, *sys.path])}
        subprocess.run(words, env=environment, check=False, capture_output=True)

    return after(subject, fault)


def killed_here(name: str, folder: str, at: str) -> None:
    """Run a command that kills its own process at a call."""
    subject = next(s for s in SUBJECTS if s.name == name)
    with Stop(int(at), None):
        ran(Path(folder), subject.words)


class Failing:
    """The module ``os`` as :mod:`caltest._base.saving` sees it, of which one call fails."""

    CALLS = ("open", "fsync", "chmod", "replace")

    def __init__(self, at: int, code: int) -> None:
        self.at, self.code, self.calls = at, code, 0

    def __getattr__(self, name: str) -> Any:
        value = getattr(os, name)
        return self._counted(value) if name in self.CALLS else value

    def _counted(self, call: Callable[..., Any]) -> Callable[..., Any]:
        def failing(*args: Any, **options: Any) -> Any:
            self.calls += 1
            if self.calls == self.at:
                raise OSError(self.code, os.strerror(self.code))
            return call(*args, **options)

        return failing


def full(subject: Subject, at: int, code: int) -> tuple[str, bool]:
    """Return what is wrong after a failing operation on files, and whether there was one."""
    failing = Failing(at, code)
    filled = saving._fill

    def half(file: Any, content: bytes) -> None:
        failing.calls += 1
        if failing.calls == failing.at:
            file.write(content[: len(content) // 2])
            file.flush()
            raise OSError(code, os.strerror(code))
        filled(file, content)

    def fault(folder: Path) -> None:
        with mock.patch.object(saving, "os", failing), mock.patch.object(saving, "_fill", half):
            status, _ = ran(folder, subject.words)
        if failing.calls >= at and status not in (2, 0):
            raise AssertionError(f"exit code {status}")

    try:
        wrong = after(subject, fault)
    except AssertionError as error:
        wrong = str(error)
    return wrong, failing.calls >= at


def clock_back(subject: Subject) -> str:
    """Return what is wrong when the clock and the times of files go back by an hour."""
    real, real_ns = time.time, time.time_ns

    def fault(folder: Path) -> None:
        for path in folder.iterdir():
            if path.name != subject.file:  # the links of later faults keep their times
                copy = shutil.copy2(path, path.with_suffix(".copy"))
                os.replace(copy, path)
            then = path.stat().st_mtime - 3600.0
            os.utime(path, (then, then))
        with (
            mock.patch.object(time, "time", side_effect=lambda: real() - 3600.0),
            mock.patch.object(time, "time_ns", side_effect=lambda: real_ns() - 3600 * 10**9),
        ):
            ran(folder, subject.words)

    return after(subject, fault, times=True)


# ------------------------------------------------------------------------------
# The run.


def run(file: Path, points: int = POINTS) -> dict[str, Any]:
    """Inject all faults that are not in a file yet, and return what each left behind."""
    found: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    for subject in SUBJECTS:
        calls = calls_of(subject)
        places = np.linspace(1, calls, points).astype(int)
        for number, at in enumerate(places):
            kind = ("killed", "interrupted", "memory")[
                0 if number % KILLED == 0 else 1 + number % 2
            ]
            key = f"{subject.name} {kind} {number}/{points}"
            if key not in found:
                error = KeyboardInterrupt if kind == "interrupted" else MemoryError
                at = int(at)
                found[key] = (
                    killed(subject, at) if kind == "killed" else stopped(subject, at, error)
                )
                kept(file, found, key)
        for code in (errno.ENOSPC, errno.EIO):
            name = errno.errorcode[code]
            for at in range(1, 1000):
                key = f"{subject.name} {name} {at}"
                if key in found:
                    continue
                wrong, there = full(subject, at, code)
                if not there:
                    break
                found[key] = wrong
                kept(file, found, key)
        key = f"{subject.name} clock 1"
        if key not in found:
            found[key] = clock_back(subject)
            kept(file, found, key)
    return found


def kept(file: Path, found: dict[str, Any], key: str) -> None:
    """Write what was found so far; print what is wrong."""
    if found[key]:
        print(key, found[key], flush=True)
    new = file.with_suffix(".new")
    new.write_text(json.dumps(found, indent=0, ensure_ascii=False) + "\n", encoding="utf-8")
    shutil.move(new, file)


def main() -> None:
    """Inject all faults."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--points", type=int, default=POINTS, help="Points of each command.")
    parser.add_argument("--resume", type=Path, default=MEASURED, help="Folder of faults.json.")
    o = parser.parse_args()
    found = run(o.resume / "faults.json", o.points)
    print(
        f"{len(found)} faults, {sum(bool(wrong) for wrong in found.values())} left something wrong"
    )


if __name__ == "__main__":
    main()
