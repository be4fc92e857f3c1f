"""How long audits of rows with a design take, beside those of independent rows or another checkout.

CPU seconds of one thread in a process of its own, imports included, and peak memory; medians
within one run. Files are made from a seed: clusters of 20 rows, outcomes that overlap three times,
follow-up of which a part is censored, five folds. With ``--against PATH`` the same is asked of the
checkout in that folder, and the ratio printed. Tests are timed without imports, with B = 1000. Run:
``python -m benchmarks.designs [--quick] [--against PATH] [word …]``.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path
from statistics import median

import numpy as np
from scipy.special import expit, ndtr

#: What leaves a process one thread; an idle thread of BLAS would count as work.
ONE_THREAD = (
    *("NUMBA_NUM_THREADS", "POLARS_MAX_THREADS", "OMP_NUM_THREADS"),
    *("OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"),
)
#: What is asked of a file, by the name of what is in it, and the rows it has.
AUDITS = {
    "independent": ([], (50_000, 100_000)),
    "clusters": (["--clusters", "user"], (100_000,)),
    "series": (["--time", "day", "--horizon", "3"], (100_000,)),
    "followup": (["--time", "years", "--event", "died", "--horizon", "5"], (20_000, 100_000)),
    "folds": (["--folds", "fold"], (100_000,)),
}

#: Tests of 10⁴ rows, whose seconds a process prints after one call that compiles.
TESTS = ("MultiScale()", "Kuiper()", "SKCE(ct.LaplaceKernel(0.2))", "ECE()")
TIMED = """
import time, numpy as np, caltest as ct
rng = np.random.default_rng(0); p = rng.random(10_000); y = rng.random(10_000) < p
run = dict(null=ct.RedrawLabels(), n_resamples=1000, rng=1, workers=1)
data, times = ct.Predictions.of(p, y.astype(int)), []
for _ in range(6):
    start = time.process_time(); ct.calibration_test(data, None, ct.{test}, **run)
    times.append(time.process_time() - start)
print(sorted(times[1:])[2])
"""


def write(path: Path, kind: str, n: int) -> None:
    """Write predictions of an event with their outcomes and their design."""
    rng = np.random.default_rng(n)
    p = np.round(expit(rng.normal(-0.5, 1.2, n)), 5)
    user, away = rng.integers(0, n // 20, n), rng.normal(0.0, 0.5, n // 20)
    outcome = (rng.random(n) < expit(0.9 * np.log(p / (1.0 - p)) + away[user])).astype(int)
    columns = {"p": p, "y": outcome}
    if kind == "clusters":
        columns["user"] = user
    elif kind == "folds":
        columns["fold"] = rng.integers(0, 5, n)
    elif kind == "series":
        noise = rng.normal(size=n + 2)
        together = ndtr((noise[:-2] + noise[1:-1] + noise[2:]) / 3**0.5)
        columns = {"p": p, "y": (together < p).astype(int), "day": np.arange(n)}
    elif kind == "followup":
        event, lost = rng.exponential(6.0 / np.maximum(p, 0.02)) + 0.01, rng.uniform(1.0, 9.0, n)
        time = np.minimum(event, lost).round(3)
        columns = {"risk": p, "years": time, "died": (event <= lost).astype(int)}
    lines = zip(*(column.tolist() for column in columns.values()), strict=True)
    text = "\n".join(",".join(map(str, line)) for line in lines)
    path.write_text(",".join(columns) + "\n" + text + "\n")


def asked(folder: str, arguments: list[str]) -> tuple[float, float, str]:
    """Return CPU seconds, peak megabytes and what Python prints with the package of a folder."""
    environment = os.environ | dict.fromkeys(ONE_THREAD, "1") | {"PYTHONPATH": folder}
    # Modules are compiled once, as after an installation, and not again in every process.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    environment.setdefault("PYTHONPYCACHEPREFIX", str(Path(tempfile.gettempdir(), "caltest-pyc")))
    process = subprocess.Popen(
        [sys.executable, *arguments], env=environment, cwd=folder, stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL, text=True,
    )  # fmt: skip
    assert process.stdout is not None
    said = process.stdout.read()
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    return used.ru_utime + used.ru_stime, used.ru_maxrss / 1024.0, said


def main(arguments: list[str]) -> None:
    """Time audits and tests, here and in another folder."""
    folders = [str(Path(__file__).parents[1])]
    if "--against" in arguments:
        at = arguments.index("--against")
        folders.append(str(Path(arguments.pop(at + 1)).resolve()))
        arguments.pop(at)
    repeats = 1 if "--quick" in arguments else 3
    words = [word for word in arguments if not word.startswith("-")]
    wanted = partial(_wanted, words)
    print(f"{'job':34s} {'CPU s':>8s} {'MB':>6s}" + "  before    MB  ratio" * (len(folders) - 1))
    with tempfile.TemporaryDirectory() as temporary:
        for kind, (options, sizes) in AUDITS.items():
            for n in sizes:
                if not wanted(name := f"audit {kind} {n}"):
                    continue
                write(file := Path(temporary, f"{kind}{n}.csv"), kind, n)
                call = ["-m", "caltest", "audit", str(file), *options, "--workers", "1"]
                timed(name, folders, call, repeats)
    for test in filter(wanted, TESTS):
        timed(
            f"{test} 10000", folders, ["-c", TIMED.replace("{test}", test)], repeats, printed=True
        )


def _wanted(words: list[str], name: str) -> bool:
    return not words or any(word in name for word in words)


def timed(
    name: str, folders: list[str], call: list[str], repeats: int, printed: bool = False
) -> None:
    """Print the seconds and the memory of a call in every folder, after one that compiles."""
    line, known = f"{name:34s}", []
    for folder in folders:
        answers = [asked(folder, call) for _ in range(repeats + 1)][1:]
        seconds = median(float(said) if printed else cpu for cpu, _, said in answers)
        known.append(seconds)
        line += f" {seconds:8.3f} {max(memory for _, memory, _ in answers):6.0f}"
    print(line + (f" {known[1] / known[0]:6.1f}" if len(known) > 1 else ""), flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
