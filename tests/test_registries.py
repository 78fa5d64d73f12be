"""A method, a feature map and a maze are each added by one file, and are then known everywhere."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eigenoptions as eo
from eigenoptions import features, mdp
from eigenoptions.cli import main
from eigenoptions.discovery import methods as registry
from eigenoptions.studio import endpoints
from eigenoptions.studio.requests import Request

METHOD = """
import numpy as np
from eigenoptions.discovery.methods import Method
from eigenoptions.options import Purpose

def purposes(mdp, n_options, rng, *, operator="normalized"):
    return [Purpose(np.arange(mdp.n_states) == s, f"corner {s}") for s in (0, mdp.n_states - 1)][:n_options]

METHOD = Method("corners", purposes=purposes, n_options=2, summary="shortest paths to two corners")
"""
FEATURES = '''
from dataclasses import dataclass
import numpy as np
from eigenoptions.features import Raw, register

@register
@dataclass(frozen=True)
class Squared(Raw):
    """Squares of the observations."""
    name = "squared"
    def __call__(self, obs):
        return super().__call__(obs) ** 2
'''


def run(capsys: pytest.CaptureFixture[str], *args: str) -> dict[str, Any]:
    assert main([*args, "--json"]) == 0
    found: dict[str, Any] = json.loads(capsys.readouterr().out)
    return found


@pytest.fixture
def corners(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    (tmp_path / "corners.py").write_text(METHOD)
    monkeypatch.setattr(registry, "__path__", [*registry.__path__, str(tmp_path)])
    yield "corners"
    sys.modules.pop("eigenoptions.discovery.methods.corners", None)


def test_a_planted_method_is_used_everywhere(
    corners: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert corners in eo.methods()
    options = eo.discover("i-maze", method=corners)
    assert options.labels == ("corner 0", "corner 18")
    found = run(capsys, "discover", "i-maze", "--method", corners, "--operator", "combinatorial")
    assert [o["label"] for o in found["options"]] == ["corner 0", "corner 18"]
    assert found["settings"]["operator"] == "combinatorial"
    assert len(run(capsys, "diffusion", "i-maze", "--method", corners, "-n", "2")["curve"]) == 3
    with pytest.raises(SystemExit):
        main(["learn", "--help"])
    assert corners in capsys.readouterr().out
    assert corners in endpoints.describe()["methods"]
    request = Request(map="\n".join(endpoints.drawn(eo.maze("i-maze"))), n_options=4)
    measured = [e for e in endpoints.measure(request, lambda *_: None) if e.get("method") == corners]
    assert [e["n"] for e in measured] == [1, 2]
    flags = ("--quick", "--methods", corners, "--domains", "i-maze", "--engine", "serial")
    arena = run(capsys, "arena", *flags, "--out", str(tmp_path / "arena"))
    assert arena["methods"] == [corners]
    assert corners in [row["method"] for row in arena["ranking"]["diffusion time, 8 options"]]
    assert "shortest paths to two corners" in (tmp_path / "arena" / "index.html").read_text()


def test_a_planted_feature_map_is_used_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "squared_features.py").write_text(FEATURES)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(features.MAPS, "squared", "squared_features")
    options = eo.discover("MountainCar-v0", 2, features="squared", steps=500)
    found = run(capsys, "discover", "MountainCar-v0", "-n", "2", "--features", "squared", "--steps", "500")
    assert [o["eigenvalue"] for o in found["options"]] == options.eigenvalues.tolist()
    with pytest.raises(SystemExit):
        main(["discover", "--help"])
    assert "squared" in capsys.readouterr().out


def test_a_planted_maze_is_used_everywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "corridor.txt").write_text("S....G\n")
    monkeypatch.setattr(mdp, "FOLDER", tmp_path)
    assert eo.mazes() == ["corridor"]
    assert np.isfinite(eo.diffusion_time(eo.maze("corridor")))
    assert run(capsys, "mazes")["mazes"][0]["name"] == "corridor"
    assert run(capsys, "discover", "corridor", "-n", "2")["states"] == 6
    assert endpoints.describe()["mazes"] == [{"name": "corridor", "map": ["S....G"]}]
