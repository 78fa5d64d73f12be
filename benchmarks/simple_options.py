"""All eigenoptions of four rooms against the package simpleoptions.

Its generator (0.11.0) raises as shipped, so two lines are repaired here at run time. Its graph has a self-loop at
every cell beside a wall, and it stops sweeping early, so values are compared on its own eigenvectors.
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
from benchmarks.timing import Row, measure

REPAIRS = {
    "in self.env.options if": "in self.env._options if",
    "get_successors(state, [action])[0]": "get_successors(state, [action])[0][0][0]",
}


def load_generator() -> Any:
    """The class `EigenoptionGenerator` of simpleoptions, repaired."""
    if find_spec("tqdm") is None:
        stand_in = types.ModuleType("tqdm")
        stand_in.tqdm = lambda items, **_: items  # type: ignore[attr-defined]
        sys.modules["tqdm"] = stand_in
    module = importlib.import_module("simpleoptions.implementations.eigenoptions")
    source = inspect.getsource(module)
    for old, new in REPAIRS.items():
        if old not in source:
            raise SystemExit(
                f"another version of simpleoptions is installed: {old!r} is not in it"
            )
        source = source.replace(old, new)
    exec(compile(source, str(module.__file__), "exec"), vars(module))
    return module.EigenoptionGenerator


def make_rooms(text: str) -> Any:
    """A map without a goal as an environment of simpleenvs."""
    from simpleenvs.envs.discrete_rooms import DiscreteRoomEnvironment

    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "map.txt"
        path.write_text(
            "\n".join(" ".join(line) for line in text.replace("G", ".").split("\n"))
        )
        return DiscreteRoomEnvironment(str(path))


def compare_discovery() -> Iterator[Row]:
    """All 208 eigenoptions of four rooms."""
    generator = load_generator()
    text = (
        (Path(eo.__file__).parent / "mdp" / "mazes" / "four-rooms.txt")
        .read_text()
        .strip()
    )
    mdp = eo.maze(text)
    env, generate = make_rooms(text), generator(num_pvfs=mdp.n_states, gamma=0.9)
    theirs: list[Any] = []
    with contextlib.redirect_stderr(io.StringIO()):
        slow = measure(lambda: theirs.extend(generate.generate_options(env)))
    cells = [tuple(cell) for cell in np.asarray(mdp.coords).tolist()]
    vectors = np.array([[option.pvf[cell] for cell in cells] for option in theirs])
    values = np.array(
        [[option.state_values[cell] for cell in cells] for option in theirs]
    )
    ours = eo.solve(mdp, [eo.Purpose(e, str(i)) for i, e in enumerate(vectors)])
    assert np.abs(ours.value - values).max() < 1e-6
    fast = min(
        measure(lambda: eo.discover(mdp, 2 * mdp.n_states, skip_zero=False))
        for _ in range(5)
    )
    yield Row(
        f"all {len(theirs)} eigenoptions, four rooms", fast, slow, "simpleoptions"
    )
