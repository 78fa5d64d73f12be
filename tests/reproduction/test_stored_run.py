"""The stored run: verdicts and versions with which later runs are compared."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from reproduction import stored_run
from reproduction.stored_run import (
    describe_changes,
    list_installed,
    read_lock,
    read_verdicts,
    store_run,
)

RESULTS: dict[str, Any] = {
    "quick": False,
    "claims": {
        "walls": {
            "section": "2.2",
            "game": False,
            "readings": {"main": "holds", "k + 1 steps": "partly"},
        }
    },
}


@pytest.fixture
def stored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stored_run, "VERDICTS", tmp_path / "verdicts.csv")
    monkeypatch.setattr(stored_run, "LOCK", tmp_path / "requirements.lock")
    store_run(RESULTS)


@pytest.mark.usefixtures("stored")
def test_run_is_compared_with_the_stored_one() -> None:
    assert len(read_verdicts()) == 2
    assert "all as in" in describe_changes(RESULTS)

    other = {"main": "holds", "k + 1 steps": "holds"}
    claims = {"walls": {**RESULTS["claims"]["walls"], "readings": other}}
    changes = describe_changes({**RESULTS, "claims": claims})
    assert "walls (k + 1 steps): holds, stored partly" in changes


@pytest.mark.usefixtures("stored")
def test_versions_are_named_where_they_differ() -> None:
    assert read_lock() == list_installed()
    assert stored_run.list_other_versions() == []
    stored_run.LOCK.write_text("numpy==0.1\n", encoding="utf-8")
    (other,) = stored_run.list_other_versions()
    assert other.startswith("numpy")


def test_quick_run_is_not_stored() -> None:
    with pytest.raises(ValueError, match="quick"):
        store_run({**RESULTS, "quick": True})


def test_lock_has_names_and_versions_of_what_the_reproduction_needs() -> None:
    lock = read_lock()
    assert {"numpy", "scipy", "numba", "pandas", "jinja2", "ale-py"} <= lock.keys()
    assert all(number[0].isdigit() for number in lock.values())
