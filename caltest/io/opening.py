"""Opening files, plain or compressed, and the standard input, as bytes of a known format."""

from __future__ import annotations

import gzip
import sys
import zipfile
from importlib import import_module
from io import BytesIO
from itertools import chain
from os import PathLike
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple, cast

from caltest.errors import InvalidPredictionsError

#: The formats, and the endings of their files.
ENDINGS = {
    "csv": (".csv", ".tsv", ".txt"),
    "json": (".json", ".jsonl", ".ndjson"),
    "parquet": (".parquet",),
    "arrow": (".arrow", ".feather"),
    "excel": (".xlsx",),
    "npz": (".npz",),
    "npy": (".npy",),
    "inspect": (".eval",),
}
#: How bytes begin that come without an ending.
_BEGINNINGS: dict[str, bytes | tuple[bytes, ...]] = {
    ".gz": b"\x1f\x8b",
    ".zst": b"\x28\xb5\x2f\xfd",
    ".zip": b"PK\x03\x04",
    ".parquet": b"PAR1",
    ".arrow": b"ARROW1",
    ".npy": b"\x93NUMPY",
    ".json": (b"{", b"["),
    ".csv": b"",
}


class Opened(NamedTuple):
    """The bytes of a file, unpacked, what they are called and are, and the sheet to read."""

    name: str
    format: str
    file: BinaryIO
    sheet: str | None = None


def opened(path: str | PathLike[str], format: str | None) -> Opened:
    """Open a file, or the standard input for ``-``; what it is follows from its ending."""
    if not isinstance(path, (str, PathLike)):
        raise TypeError(
            f"path is a {type(path).__name__}, not the name of a file: values in memory are for "
            "Predictions.of(probs, labels)"
        )
    path, file = Path(path), cast(BinaryIO, BytesIO())
    name, ending, filled = path.name, path.suffix.lower(), True
    if str(path) == "-":
        data = sys.stdin.buffer.read()
        name, file, ending, filled = "standard input", BytesIO(data), _beginning(data), bool(data)
    elif path.is_dir():
        raise InvalidPredictionsError(
            f"{path} is a folder, not a file of predictions: name its files, such as "
            f"'{path / '*.parquet'}'"
        )
    elif not path.exists():
        raise FileNotFoundError(f"there is no file {path}")
    elif filled := path.stat().st_size > 0:
        file = path.open("rb")
    if not filled:
        raise InvalidPredictionsError(f"{name} is empty")
    if ending in (".gz", ".zst", ".zip") and format not in ("npz", "excel", "inspect"):
        with file:
            inner, data = _unpacked(name, ending, file)
        file, ending = BytesIO(data), Path(inner).suffix.lower() or _beginning(data)
    kind = format or next((name for name, suffixes in ENDINGS.items() if ending in suffixes), None)
    if kind is None:
        file.close()
        endings = ", ".join(chain.from_iterable(ENDINGS.values()))
        raise InvalidPredictionsError(
            f"{name}: files of type {ending or '(no ending)'} cannot be read; known are {endings}, "
            "also in .gz, .zst and .zip; say which of them it is with format=",
            [("--format", "csv")],
        )
    return Opened(name, kind, file)


def _beginning(data: bytes) -> str:
    start = data[:64].removeprefix(b"\xef\xbb\xbf").lstrip()
    return next(ending for ending, mark in _BEGINNINGS.items() if start.startswith(mark))


def _unpacked(name: str, ending: str, file: BinaryIO) -> tuple[str, bytes]:
    """Return what is in a compressed file, and its name."""
    try:
        if ending != ".zip":
            unpack = gzip.decompress if ending == ".gz" else unzst
            return name.lower().removesuffix(ending), unpack(file.read())
        with zipfile.ZipFile(file) as packed:
            members = [m for m in packed.namelist() if not m.endswith("/") and "__MACOSX" not in m]
            if len(members) == 1:
                return members[0], packed.read(members[0])
    except ImportError:
        raise
    except Exception:  # whatever a damaged file makes of the decompressors
        raise InvalidPredictionsError(f"{name}: this is not a readable {ending} file") from None
    raise InvalidPredictionsError(
        f"{name} holds {len(members)} files ({', '.join(members)}): unpack it and name one of them"
    )


def unzst(data: bytes) -> bytes:
    """Decompress Zstandard."""
    pyarrow = imported("pyarrow", "parquet", "Zstandard files")
    return bytes(pyarrow.CompressedInputStream(pyarrow.BufferReader(data), "zstd").read())


def imported(module: str, extra: str, what: str) -> Any:  # of libraries without types
    """Import an optional library, or name the extra that installs it."""
    package = module.partition(".")[0]
    try:
        import_module(package)
        return import_module(module)
    except ImportError:
        needed = f"reading {what} needs {package}: pip install 'caltest[{extra}]'"
        raise ImportError(needed) from None
