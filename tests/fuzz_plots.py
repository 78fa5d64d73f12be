"""Calls of pictures. Most only make panels, which check their input; figures are drawn in one of many examples."""

from __future__ import annotations

from typing import Any

import numpy as np
from tests.fuzz_given import Calls, Given, rows_of, spectrum_of

import eigenoptions as eo
from eigenoptions import plots
from eigenoptions.features import Raw

CORRIDOR = [[0, 0], [0, 1], [0, 2]]


def drawn(panel: Any) -> object:
    """A panel that was accepted can be drawn."""
    return plots.figure([panel])


def screens(x: Given, *shape: int) -> Any:
    return np.zeros((len(x.values) % 3, 4, *shape, 3), dtype=np.uint8)


def small(number: Any) -> Any:
    """A number that does not ask for much memory."""
    return 4 if isinstance(number, int) and number > 4 else number


CALLS: Calls = {
    "plots.Panel": [lambda x: plots.Panel(x.a, "", x.b)],
    "plots.maze_panel": [
        lambda x: plots.maze_panel(x.bad.indices.reshape(-1, 1)),
        lambda x: plots.maze_panel(CORRIDOR, {x.a: x.b} if x.a != [] else x.b),
    ],
    "plots.value_panel": [
        lambda x: plots.value_panel(CORRIDOR, x.values),
        lambda x: plots.value_panel(CORRIDOR, [1, 2, 3], limits=x.a, label=x.b),
        lambda x: plots.value_panel(x.a, x.b),
    ],
    "plots.surface_panel": [lambda x: plots.surface_panel(CORRIDOR, x.values)],
    "plots.policy_panel": [
        lambda x: plots.policy_panel(CORRIDOR, x.bad.indices),
        lambda x: plots.policy_panel(CORRIDOR, [1, -1, x.a], moves=x.b),
    ],
    "plots.curve_panel": [
        lambda x: plots.curve_panel(x.values, {"a": x.values}),
        lambda x: plots.curve_panel([0, 1], {"a": [[1, 2], [x.a, 3]]}, confidence=x.b),
        lambda x: plots.curve_panel(x.a, x.b),
        lambda x: plots.curve_panel([0, 1], {"": [0, 1]}, ticks=x.a, limits=x.b),
    ],
    "plots.point_panel": [lambda x: plots.point_panel({"a": x.values}), lambda x: plots.point_panel(x.a)],
    "plots.line_style": [lambda x: plots.line_style(x.a)],
    "plots.screen_panel": [
        lambda x: plots.screen_panel(x.a, x.b),
        lambda x: plots.screen_panel(screens(x)[0:1]),
    ],
    "plots.time_panel": [
        lambda x: plots.time_panel({"a": x.values}, bins=x.a),
        lambda x: plots.time_panel(x.a, bins=[0, 1]),
    ],
    "plots.caption": [lambda x: plots.caption("e2+", x.a)],
}
SLOW: Calls = {
    "plots.figure": [
        lambda x: plots.figure([plots.maze_panel(CORRIDOR)] * 3, columns=x.a, width=small(x.b)),
        lambda x: plots.figure([plots.maze_panel(CORRIDOR)], ratios=x.a, legend=x.b),
        lambda x: plots.figure(x.a),
        lambda x: plots.figure([x.a]),
        lambda x: drawn(plots.value_panel(CORRIDOR, x.values)),
        lambda x: drawn(plots.maze_panel(CORRIDOR, {x.a: "S"})),
        lambda x: drawn(plots.curve_panel([0, 1], {"a": [[1, 2], [x.values[0], 3]]})),
    ],
    "plots.domains": [lambda x: plots.domains([x.line], width=small(x.a)), lambda x: plots.domains(x.b)],
    "plots.pvfs": [
        lambda x: plots.pvfs(eo.spectrum(eo.graph(x.line)), x.line.coords, x.a, surface=x.b),
        lambda x: plots.pvfs(spectrum_of(x), x.a),
        lambda x: plots.pvfs(x.a, x.b),
    ],
    "plots.options": [
        lambda x: plots.options(x.options, columns=x.a, width=small(x.b)),
        lambda x: plots.options(x.skills),
        lambda x: plots.options(x.a),
    ],
    "plots.landscapes": [
        lambda x: plots.landscapes(rows_of(x, direction=[[1.0, 0.0]], features=Raw()), x.values[:2], [1, 1]),
        lambda x: plots.landscapes(x.a, [0, 0], [1, 1]),
        lambda x: plots.landscapes(rows_of(x, direction=[[1.0, 0.0]]), [0, 0], [1, 1], x.a, names=x.b),
    ],
    "plots.heat": [lambda x: plots.heat(x.values, CORRIDOR), lambda x: plots.heat(x.a, x.b)],
    "plots.curves": [
        lambda x: plots.curves([1, 2], {"": [1.0, 2.0]}, log=x.a, legend=x.b),
        lambda x: plots.curves([1, 2], {"": [1.0, 2.0]}, nonsense=x.a),
    ],
    "plots.learning": [
        lambda x: plots.learning(eo.q_learning(x.mdp, runs=2, episodes=2, max_steps=5), x.a),
        lambda x: plots.learning(x.b),
    ],
    "plots.plot": [lambda x: plots.plot(x.a), lambda x: plots.plot(x.line, width=small(x.b))],
    "plots.svg": [lambda x: plots.svg(x.a)],
    "plots.save": [
        lambda x: plots.save(plots.figure([plots.maze_panel(CORRIDOR)]), x.folder / f"picture.{x.a}"),
        lambda x: plots.save(x.a, x.folder / "picture.svg"),
    ],
    "plots.clip": [
        lambda x: plots.clip(x.folder / "clip.gif", screens(x, 4), every=x.a),
        lambda x: plots.clip(x.folder / "clip.gif", x.b),
    ],
}
