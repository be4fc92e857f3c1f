"""Record what every public call of the test suite answers, and compare two records.

Moving code must not change an answer. ``record`` runs the fast tests of a checkout with fixed seeds
and every public function of :mod:`caltest` and the command line wrapped. It stores a digest of each
answer (text, JSON, warnings or refusal) under a digest of the call's arguments. ``compare`` lists
the calls that both records contain and that answer differently::

    git worktree add ../before v0.2.0
    python scripts/oracle.py record ../before before.json.gz
    python scripts/oracle.py record . after.json.gz
    python scripts/oracle.py compare before.json.gz after.json.gz

File names are replaced by digests of the files' contents, and only the outermost call counts. A
record takes as long as the suite on one core, and about 400 kB. Tests that look at seeds fail while
they are recorded; their calls are compared all the same.
"""

from __future__ import annotations

import argparse
import contextlib
import functools
import gzip
import hashlib
import inspect
import io
import json
import os
import re
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import fields, is_dataclass
from pathlib import Path
from typing import Any

import numpy as np

RECORD = "CALTEST_ORACLE"  # the environment variable that says where a run of pytest writes
ADDRESS = re.compile(r" at 0x[0-9a-f]+|\b\d+\.\d+ s\b|\d{4}-\d\d-\d\dT[\d:.+Z-]+")


def digest(value: object) -> str:
    """Hash a value by what it holds, the same in every process."""
    state = hashlib.blake2b(digest_size=12)
    for part in _parts(value):
        state.update(part)
    return state.hexdigest()


def _parts(value: Any) -> Iterator[bytes]:
    if isinstance(value, np.ndarray):
        yield f"{value.dtype}{value.shape}".encode()
        yield repr(value.tolist()).encode() if value.dtype.hasobject else value.tobytes()
    elif isinstance(value, np.random.Generator):
        yield from _parts(value.bit_generator.state)
    elif isinstance(value, io.BytesIO | io.StringIO):
        yield repr(value.getvalue()).encode()
    elif isinstance(value, dict):
        for key in value:
            yield f"{key}=".encode()
            yield from _parts(value[key])
    elif isinstance(value, list | tuple):
        yield f"{type(value).__name__}{len(value)}".encode()
        for part in value:
            yield from _parts(part)
    elif isinstance(value, str | os.PathLike) and _is_file(value):
        yield hashlib.blake2b(Path(value).read_bytes()).digest()
    elif hasattr(value, "probs") and hasattr(value, "labels"):
        yield from _parts([np.asarray(value.probs), np.asarray(value.labels), str(value)])
    elif is_dataclass(value) and not isinstance(value, type):
        yield type(value).__name__.encode()
        yield from _parts([getattr(value, f.name, None) for f in fields(value)])
    elif callable(value) and hasattr(value, "__qualname__"):
        yield value.__qualname__.encode()
    elif hasattr(value, "to_dict") and hasattr(value, "columns"):
        yield repr(value.to_dict()).encode()
    else:
        yield ADDRESS.sub("", repr(value)).encode()


def _is_file(name: str | os.PathLike[str]) -> bool:
    with contextlib.suppress(OSError, ValueError):
        return Path(name).is_file()
    return False


class Recorder:
    """The calls of one run, {digest of the call: (function, digest of the answer, test)}."""

    def __init__(self) -> None:
        self.calls: dict[str, tuple[str, str, str]] = {}
        self.inside = False

    def wrap(self, name: str, call: Callable[..., Any]) -> Callable[..., Any]:
        """Wrap a function so that its outermost calls are recorded."""

        @functools.wraps(call)
        def recorded(*args: Any, **options: Any) -> Any:
            if self.inside:
                return call(*args, **options)
            self.inside = True
            try:
                key = digest([name, args, dict(sorted(options.items()))])
                return self._answer(name, key, lambda: call(*args, **options))
            finally:
                self.inside = False

        return recorded

    def _answer(self, name: str, key: str, call: Callable[[], Any]) -> Any:
        said: list[str] = []
        show = warnings.showwarning
        printed = io.StringIO()
        try:
            with _copied(printed) if name == "cli" else contextlib.nullcontext():
                answer = call()
            said += [answer.to_json()] if hasattr(answer, "to_json") else []
            said += [ADDRESS.sub("", str(answer)), printed.getvalue()]
            return answer
        except BaseException as error:
            said += [type(error).__name__, str(error), printed.getvalue()]
            raise
        finally:
            warnings.showwarning = show
            folders = (re.escape(folder) for folder in (tempfile.gettempdir(), os.getcwd()))
            text = re.sub(rf"(?:{'|'.join(folders)})\S*", "PATH", "\n".join(said))
            test = os.environ.get("PYTEST_CURRENT_TEST", "").partition(" ")[0].rpartition("/")[2]
            self.calls.setdefault(key, (name, digest(text), test))


@contextlib.contextmanager
def _copied(copy: io.StringIO) -> Iterator[None]:
    """Copy what is written to standard output and error."""
    out, err = sys.stdout, sys.stderr

    class Both(io.TextIOBase):
        def __init__(self, real: Any) -> None:
            self.real = real

        def write(self, text: str) -> int:
            copy.write(text)
            return int(self.real.write(text))

        def flush(self) -> None:
            self.real.flush()

        def __getattr__(self, name: str) -> Any:
            return getattr(self.real, name)

    sys.stdout, sys.stderr = Both(out), Both(err)  # type: ignore[assignment]
    try:
        yield
    finally:
        sys.stdout, sys.stderr = out, err


def pytest_configure() -> None:
    """Fix all seeds and wrap the public functions: this file is also a plug-in of pytest."""
    if RECORD not in os.environ:
        return
    import secrets

    import caltest
    from caltest import cli

    class Fixed(np.random.SeedSequence):
        def __init__(self, entropy: Any = None, **options: Any) -> None:
            super().__init__(7 if entropy is None else entropy, **options)

    generator = np.random.default_rng
    np.random.SeedSequence = Fixed  # type: ignore[misc]
    np.random.default_rng = lambda seed=None: generator(7 if seed is None else seed)
    secrets.randbits = lambda bits: 7
    for name in dir(caltest):
        value = getattr(caltest, name, None)
        if inspect.isfunction(value) and not name.startswith("_"):
            setattr(caltest, name, RECORDER.wrap(name, value))
    cli.main = RECORDER.wrap("cli", cli.main)  # type: ignore[method-assign]


def pytest_unconfigure() -> None:
    """Write the record."""
    if RECORD in os.environ:
        with gzip.open(os.environ[RECORD], "wt") as file:
            json.dump(RECORDER.calls, file)


RECORDER = Recorder()


def record(tree: Path, out: Path) -> None:
    """Run the fast tests of a checkout on one core and write its record."""
    environment = {**os.environ, RECORD: str(out.resolve())}
    environment["PYTHONPATH"] = os.pathsep.join([str(tree), str(Path(__file__).parent)])
    subprocess.run(
        [sys.executable, "-m", "pytest", "--quiet", "-n", "0", "-p", "oracle"],
        cwd=tree,
        env=environment,
        check=False,
    )


def compare(before: Path, after: Path) -> int:
    """Print the calls that answer differently; return how many there are."""
    with gzip.open(before, "rt") as old, gzip.open(after, "rt") as new:
        a, b = json.load(old), json.load(new)
    both = a.keys() & b.keys()
    changed = [key for key in a if key in both and a[key][1] != b[key][1]]
    print(
        f"{len(both)} calls in both, "
        f"{len(a) - len(both)} only before, {len(b) - len(both)} only after"
    )
    print(f"{len(changed)} answer differently", dict(Counter(a[key][0] for key in changed)))
    for key in changed:
        print(f"  {a[key][0]:24} {a[key][2]}  →  {b[key][2]}")
    return len(changed)


def main() -> None:
    """Read the command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parts = parser.add_subparsers(dest="job", required=True)
    for job, names in {"record": ("tree", "out"), "compare": ("before", "after")}.items():
        part = parts.add_parser(job)
        for name in names:
            part.add_argument(name, type=Path)
    options = parser.parse_args()
    if options.job == "record":
        record(options.tree.resolve(), options.out)
    else:
        sys.exit(compare(options.before, options.after) > 0)


if __name__ == "__main__":
    main()
