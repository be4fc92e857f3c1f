"""Hooks of other tools: the fixture of pytest by its entry point, and that of pre-commit."""

import os
import tomllib
from pathlib import Path

import pytest

pytest_plugins = ["pytester"]

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_pytest_finds_the_fixture_by_the_entry_point(pytester):
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    installed = pytester.path / "site" / "hooked-1.0.dist-info"
    installed.mkdir(parents=True)
    (installed / "METADATA").write_text("Metadata-Version: 2.1\nName: hooked\nVersion: 1.0\n")
    lines = (f"{n} = {m}" for n, m in project["entry-points"]["pytest11"].items())
    (installed / "entry_points.txt").write_text("\n".join(["[pytest11]", *lines]))
    pytester.makepyfile(
        """
        import sys

        def test_nothing_is_imported_before():
            assert "caltest.reports" not in sys.modules

        def test_fixture(assert_calibrated):
            import caltest as ct
            rows = ct.examples.GaussianMixture(0.0, -2.0).sample(5000, rng=1)
            assert_calibrated(rows, tolerance=0.05)
        """
    )
    before = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([str(installed.parent), str(ROOT)])
    try:
        run = pytester.runpytest_subprocess("-p", "no:cacheprovider", "-p", "no:xdist")
    finally:
        os.environ.pop("PYTHONPATH")
        if before is not None:
            os.environ["PYTHONPATH"] = before
    run.assert_outcomes(passed=2)


def test_the_hook_of_pre_commit_runs_the_gate(run, tmp_path):
    yaml = pytest.importorskip("yaml")
    (hook,) = yaml.safe_load((ROOT / ".pre-commit-hooks.yaml").read_text())
    command, *words = hook["entry"].split()
    assert (command, hook["id"], hook["language"]) == ("caltest", "caltest-gate", "python")
    data = tmp_path / "predictions.csv"
    data.write_text("p,y\n" + "0.9,0\n0.8,1\n0.7,0\n0.2,0\n" * 200)
    code, out, told = run(*words, "--tolerance=0.02", data)
    assert (code, "FAILED" in out) == (1, True), told
