"""Importing is light, and nothing global is touched."""

import subprocess
import sys

import numpy as np

import caltest as ct

HEAVY = ("numba", "matplotlib", "pandas", "sklearn", "scipy.stats", "pyarrow", "rich", "tqdm")


PARTS = ("cli.verbs", "plots", "planning", "reports.document", "monitoring", "recalibration")
OTHER = tuple(f"caltest.{part}" for part in PARTS)


def _loaded_after(code: str, modules: tuple[str, ...] = HEAVY) -> set[str]:
    program = f"{code}\nimport sys\nprint(*[m for m in {modules!r} if m in sys.modules])"
    run = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    return set(run.stdout.split())


def test_an_exact_p_value_needs_no_compiler():
    code = "import caltest as ct\nassert ct.calibration_test(ct.examples.digits()).null == 'exact'"
    assert not _loaded_after(code) & {"numba", "scipy.stats", "matplotlib"}


def test_commands_import_what_they_need():
    """No command imports what another needs, and the package nothing that is heavy."""
    assert _loaded_after("import caltest.cli", (*HEAVY, *OTHER)) == set()
    code = "from caltest.cli import cli; cli.get_command(None, 'audit')"
    loaded = _loaded_after(f"{code}; import caltest.reports.audit", (*HEAVY, *OTHER))
    assert loaded == {"caltest.cli.verbs"}


def test_public_names_exist_and_none_looks_like_a_test():
    for name in ct.__all__:
        assert hasattr(ct, name)
        assert not name.lower().startswith("test")


def test_global_random_state_is_left_alone():
    before = np.random.get_state()[1].copy()  # noqa: NPY002 (the state that must not change)
    ct.audit(ct.examples.SixPoints().sample(60, 1), n_resamples=199)
    np.testing.assert_array_equal(np.random.get_state()[1], before)  # noqa: NPY002
