"""Reading files beside the libraries that parse them: ``python -m benchmarks.files``.

CPU seconds of all threads, medians of five, and their ratios. The predictions that are returned
have been checked row by row; the libraries return the columns as one matrix.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.csv
import pyarrow.parquet

import caltest as ct
from benchmarks.measure import confident, seconds


def table(n: int, n_classes: int) -> pyarrow.Table:
    probs = confident(n, n_classes)
    columns = {f"p_{k}": probs[:, k] for k in range(n_classes)}
    return pyarrow.table(columns | {"label": probs.argmax(axis=1)})


def matrix(read: pyarrow.Table) -> np.ndarray:
    return read.to_pandas().to_numpy()


def compare(what: str, path: Path, library: Callable[[], Any]) -> None:
    own, other = seconds(lambda: ct.read_predictions(path)), seconds(library)
    print(f"{what:42} caltest {own:6.3f} s   library {other:6.3f} s   ratio {own / other:.2f}")


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        long, square = table(1_000_000, 9), table(1000, 999)
        path = Path(folder) / "f.csv"
        pyarrow.csv.write_csv(long, path)
        compare("CSV 10⁶ × 10, pyarrow.csv", path, lambda: matrix(pyarrow.csv.read_csv(path)))
        columns = Path(folder) / "f.parquet"
        pyarrow.parquet.write_table(long, columns)
        compare(
            "Parquet 10⁶ × 10, pyarrow.parquet",
            columns,
            lambda: matrix(pyarrow.parquet.read_table(columns)),
        )
        path = Path(folder) / "g.csv"
        pyarrow.csv.write_csv(square, path)
        compare(
            "CSV 1000 × 1000, numpy.loadtxt",
            path,
            lambda: np.loadtxt(path, delimiter=",", skiprows=1),
        )


if __name__ == "__main__":
    main()
