"""All eigenoptions of four rooms against the package simpleoptions.

Its generator (0.11.0) raises as shipped, so two lines are repaired here at run time.
Its graph has a self-loop at every cell beside a wall, and it stops sweeping early, so
values are compared on its own eigenvectors.
"""

from __future__ import annotations

import contextlib
import importlib
import inspect
import io
import sys
import tempfile
import types
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

import eigenoptions as eo
from benchmarks.timing import Row, measure, measure_best

_REPAIRS = {
    "in self.env.options if": "in self.env._options if",
    "get_successors(state, [action])[0]": "get_successors(state, [action])[0][0][0]",
}


def compare_discovery() -> Iterator[Row]:
    """Compare all 208 eigenoptions of four rooms."""
    maps = Path(eo.__file__).parent / "mdp" / "mazes"
    text = (maps / "four-rooms.txt").read_text().strip()
    mdp = eo.maze(text)
    env = _make_rooms(text)
    generator = _load_generator()(num_pvfs=mdp.n_states, gamma=0.9)
    theirs: list[Any] = []

    def generate_options() -> None:
        theirs.extend(generator.generate_options(env))

    def discover() -> None:
        eo.discover(mdp, 2 * mdp.n_states, skip_zero=False)

    # It prints its progress.
    with contextlib.redirect_stderr(io.StringIO()):
        their_seconds = measure(generate_options)
    _check_same_values(mdp, theirs)
    yield Row(
        f"all {len(theirs)} eigenoptions, four rooms",
        measure_best(discover, rounds=5),
        their_seconds,
        rival="simpleoptions",
    )


def _check_same_values(mdp: eo.MDP, options: list[Any]) -> None:
    """Check that ours gives the eigenvectors of their options the same values."""
    cells = [tuple(cell) for cell in np.asarray(mdp.coords).tolist()]
    purposes: list[eo.Purpose] = []
    values = []
    for option in options:
        eigenvector = np.array([option.pvf[cell] for cell in cells])
        purposes.append(eo.Purpose(eigenvector, f"option {len(purposes)}"))
        values.append([option.state_values[cell] for cell in cells])

    ours = eo.solve(mdp, purposes).value
    assert np.abs(ours - np.array(values)).max() < 1e-6


def _load_generator() -> Any:
    """Load the class `EigenoptionGenerator` of simpleoptions, and repair it."""
    if find_spec("tqdm") is None:
        stand_in = types.ModuleType("tqdm")
        stand_in.tqdm = lambda items, **_: items  # type: ignore[attr-defined]
        sys.modules["tqdm"] = stand_in

    module = importlib.import_module("simpleoptions.implementations.eigenoptions")
    source = inspect.getsource(module)
    for wrong, right in _REPAIRS.items():
        if wrong not in source:
            raise SystemExit(
                "another version of simpleoptions is installed: "
                f"{wrong!r} is not in it; this benchmark is written for 0.11.0"
            )
        source = source.replace(wrong, right)
    exec(compile(source, str(module.__file__), "exec"), vars(module))
    return module.EigenoptionGenerator


def _make_rooms(text: str) -> Any:
    """Make an environment of simpleenvs from a map, without its goal."""
    from simpleenvs.envs.discrete_rooms import DiscreteRoomEnvironment

    # Its maps have a space between two cells.
    lines = text.replace("G", ".").split("\n")
    spaced = "\n".join(" ".join(line) for line in lines)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "map.txt"
        path.write_text(spaced)
        return DiscreteRoomEnvironment(str(path))
