"""The test matrix: settings that take effect, that cannot be had, and that fail."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests import matrix
from tests.matrix import ROOT, Setting

needs_venv = pytest.mark.skipif(
    not (ROOT / ".venv" / "bin" / "python").exists(), reason="not made by make"
)


@pytest.mark.parametrize(
    ("output", "counts"),
    [
        (
            "...\n2107 passed, 3 skipped in 312.01s (0:05:12)\n",
            "2107 passed, 3 skipped",
        ),
        (
            "= 1 failed, 2 passed, 5 warnings, 1 error in 2.0s =",
            "1 failed, 2 passed, 1 error",
        ),
        ("!!! Interrupted: 1 error during collection !!!\n1 error in 2.0s", "1 error"),
        ("", "ended without a result"),
        ("9 passed tests\nSegmentation fault", "ended without a result"),
    ],
)
def test_counts_are_those_of_the_last_line(output, counts):
    assert matrix.read_counts(output) == counts


@needs_venv
def test_a_setting_that_cannot_be_had_or_changes_nothing_is_not_run(monkeypatch):
    def run_nothing(*arguments):
        raise AssertionError("it was run")

    monkeypatch.setattr(matrix, "run_suite", run_nothing)
    usual = matrix.probe(Setting("as it is"))
    assert usual["threads"] == "1"
    for setting, reason in (
        (matrix.make_setting_of_python("3.99"), "cannot be had"),
        (Setting("no features", {"NPY_DISABLE_CPU_FEATURES": ""}), "not have"),
        (Setting("same", {"OMP_NUM_THREADS": "1"}), "changes nothing"),
    ):
        changes, result, has_failed = matrix.run_setting(setting, usual)
        assert reason in result
        assert (changes, has_failed) == ("", False)


@needs_venv
def test_settings_are_in_effect():
    usual = matrix.probe(Setting("as it is"))
    names = {"two threads": "threads", "numba for a generic CPU": "CPU of numba"}
    for setting in matrix.list_settings():
        if setting.name in names:
            found = matrix.probe(setting)
            changed = [name for name in found if found[name] != usual[name]]
            assert changed == [names[setting.name]]


@needs_venv
def test_a_setting_that_fails_makes_the_exit_code_fail(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(matrix, "TABLE", tmp_path / "matrix.md")
    first, second = matrix.list_settings()[:2]
    second = replace(second, variables={"OMP_NUM_THREADS": "2"})
    monkeypatch.setattr(matrix, "list_settings", lambda: [first, second])
    for fails in (True, False):
        monkeypatch.setattr(
            matrix, "run_setting", lambda setting, usual, fails=fails: ("", "1", fails)
        )
        assert matrix.main([]) == fails
    assert matrix.main(["no such setting"]) == 2
    assert "no such setting" in capsys.readouterr().out

    # Another setting alone keeps the rows of the others.
    assert matrix.main([first.name]) == 0
    assert set(matrix.read_rows()) == {first.name, second.name}
