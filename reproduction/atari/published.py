"""The authors' published program, with its two faults, so that its results can be compared (paper, Section 5.2).

It takes rows of V for singular vectors (`rows_of_v`), and compares what an action leads to with what the last action
tried at the frame before led to, instead of with the present state (`published_rollouts`).
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eigenoptions.atari.emulator import Emulator
from eigenoptions.atari.lockstep import Potentials, action_values
from eigenoptions.atari.protocol import complete
from eigenoptions.atari.ram import Ram
from eigenoptions.atari.rollouts import Rolling, Rollouts, Rules
from eigenoptions.options.solver import first_best
from eigenoptions.spectra import Spectrum


def rows_of_v(spectrum: Spectrum, rng: int | np.random.Generator | None = None) -> NDArray[np.float64]:
    """``(d, d)`` directions as the published program takes them: the *rows* of V.

    ``U, s, V = np.linalg.svd(T)`` gives V transposed, and the program transposes it again and then takes row i. That
    row holds bit i of every singular vector: its entry j, meant as the weight of RAM bit j, belongs to singular value
    j. Results with such directions depend on choices that an SVD leaves open, the sign of each singular vector and the
    basis of the null space. With an `rng` the signs are random, to see how much they matter.

    >>> spectrum = Spectrum(np.array([0.0, 2.0]), np.array([[0.6, 0.8], [0.8, -0.6]]), "incidence")
    >>> rows_of_v(spectrum).tolist()
    [[0.8, 0.6], [-0.6, 0.8]]
    """
    V = complete(spectrum)
    return V if rng is None else V * np.random.default_rng(rng).choice([-1.0, 1.0], size=V.shape[1])


def published_rollouts(
    emulator: Emulator, state: Any, direction: ArrayLike, coding: Ram, frames: int, rules: Rules
) -> Rollouts:
    """As `atari.lockstep`, with the choices of the published program: every reward above 0 counts, also rounding noise.

    >>> emulator = Emulator("Freeway")
    >>> coding = Ram("bytes", addresses=(14,))
    >>> published_rollouts(emulator, emulator.save(), [[1.0]], coding, 5, Rules()).actions.tolist()
    [[1, 1, 1, 1, 1]]
    """
    if rules.horizon > 1:
        raise ValueError(f"the published program looks one step ahead: depth must be 1, got {rules.depth}")
    potentials = Potentials(direction, coding)
    # By how much the state that the program compares with is better than the present one.
    offset = np.zeros(len(potentials))
    with Rolling(emulator, state, len(potentials), frames, rules) as rolling:
        for _ in rolling.decisions():
            q = action_values(rolling, potentials)
            live = rolling.live
            chosen, acts = first_best(q - offset[live, None], 0.0)
            taken = rolling.take(chosen, ~acts)
            offset[live] = q[:, -1] - q[np.arange(len(live)), taken]
    return rolling.log
