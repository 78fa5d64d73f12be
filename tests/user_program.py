"""A user's program for type checkers.

`make package` runs mypy and pyright on it against the installed wheel.
"""

from __future__ import annotations

from pathlib import Path
from typing import assert_type

import numpy as np
from numpy.typing import NDArray

import eigenoptions as eo


def skills(folder: Path) -> float:
    """Discover, measure, learn and save, with the types that a user sees."""
    rooms = eo.maze("four-rooms")
    assert_type(rooms, eo.MDP)
    options = eo.discover(rooms, n_options=8)
    assert_type(options, eo.OptionSet)
    assert_type(options[0], eo.Option)
    assert_type(options["e2+"], eo.Option)
    assert_type(options[:4], eo.OptionSet)
    assert_type(options[0].act(3), int)
    spectrum = eo.spectrum(eo.graph(rooms), k=4)
    assert_type(spectrum.vectors, NDArray[np.float64])
    assert_type(eo.diffusion_time(rooms, options), float)
    record = eo.q_learning(rooms, options, runs=2, episodes=3, rng=0)
    assert_type(record, eo.LearningRecord)
    assert_type(record.mean(), NDArray[np.float64])
    options.save(folder / "skills.safetensors")
    eo.plots.save_figure(eo.plots.plot_options(options), folder / "options.svg")
    return eo.diffusion_time(rooms)


if __name__ == "__main__":
    import tempfile

    with tempfile.TemporaryDirectory() as place:
        print(round(skills(Path(place)), 3))
