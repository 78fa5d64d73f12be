"""Directions in the memory of a game as options that look ahead in its emulator."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from eigenoptions._types import FloatArray
from eigenoptions._validation import check_int
from eigenoptions.atari.emulator import Emulator, find_game_name
from eigenoptions.atari.ram import Ram
from eigenoptions.options import Purpose
from eigenoptions.samples.linear import LinearOptionSet
from eigenoptions.spectra import Spectrum


def ram_options(
    directions: Spectrum | LinearOptionSet | ArrayLike,
    env: Any,
    *,
    both_signs: bool = True,
    smallest_first: bool = False,
    frame_skip: int = 1,
) -> LinearOptionSet:
    """Options of a game from directions in its memory (Section 5.2).

    An option tries every action in the emulator, takes
    ``argmax_a e . (phi(s') - phi(s))``, and terminates where no action is positive
    (gamma = 0).

    Parameters
    ----------
    directions : Spectrum, array (n, d) or LinearOptionSet
        A spectrum of memory, from `slow_directions` or ``feature_spectrum(transitions,
        Ram(), whiten=False)``; the vectors e themselves, in the paper's
        bits; or options read from a file, to act in this environment.
    env : Gymnasium environment or str
        The environment in which the options will act, whose state they save and
        restore. It must be played as the data were sampled: memory as observation, the
        minimal action set, no sticky actions (a look-ahead cannot foresee them) and
        this frame skip. Or the name of a game, for options to save.
    both_signs : bool, default=True
        Whether to include the negation of each direction.
    smallest_first : bool, default=False
        By default the largest singular value comes first, as in the paper. Slow
        directions are better used from the other end.
    frame_skip : int, default=1
        Frames for which an action is repeated. Options from a file have their own.

    Returns
    -------
    LinearOptionSet
        Labels count as in the paper, ``#445+`` for direction 445 from 0. `eigenvalues`
        are those of ``T'T / 2``.

    Examples
    --------
    >>> import ale_py, gymnasium  # the first registers the environments of the second
    >>> env = gymnasium.make(
    ...     "ALE/Freeway-v5", obs_type="ram", frameskip=1, repeat_action_probability=0.0
    ... )
    >>> up = np.zeros((1, 1024))
    >>> up[0, 8 * 4] = -1.0  # bit 0 of byte 4 is off while the joystick is pushed up
    >>> options = ram_options(up, env)
    >>> obs, info = env.reset(seed=0)
    >>> options.labels, options[0].act(obs)
    (('#0+', '#0-'), 1)
    """
    if isinstance(directions, LinearOptionSet):
        options = directions
        if "game" not in options.provenance:
            raise ValueError("these options name no game: make them with ram_options")
    else:
        frame_skip = check_int("frame_skip", frame_skip)
        name = env if isinstance(env, str) else getattr(env.spec, "name", "")
        game = find_game_name(name)
        options = _make_options(
            directions, game, both_signs, smallest_first, frame_skip
        )

    if isinstance(env, str):
        return options
    _check_env(env, options.provenance["game"], options.provenance["frame_skip"])
    return options.look_ahead(env, save=_save_state, restore=_restore_state)


def _make_options(
    directions: Spectrum | ArrayLike,
    game: str,
    both_signs: bool,
    smallest_first: bool,
    frame_skip: int,
) -> LinearOptionSet:
    """Make options that are not bound to an environment."""
    features: Any
    if isinstance(directions, Spectrum):
        features = directions.features or Ram()
        vectors = directions.vectors[:, directions.n_zero :].T
        values = directions.values[directions.n_zero :]
        if not smallest_first:
            vectors = vectors[::-1]
            values = values[::-1]
    else:
        features = Ram()
        vectors = np.atleast_2d(np.asarray(directions, dtype=np.float64))
        values = np.full(len(vectors), np.nan)

    if vectors.shape[1] != features.n_features:
        raise ValueError(
            f"directions must have {features.n_features} entries, "
            f"got {vectors.shape[1]}"
        )

    emulator = Emulator(game)
    # The environment does not have the action that the emulator adds.
    n_actions = emulator.n_actions - int(emulator.noop_added)
    return LinearOptionSet(
        _make_purposes(vectors, values, both_signs),
        features,
        n_actions,
        provenance={
            "method": "ram",
            "game": game,
            "frame_skip": frame_skip,
            "gamma": 0.0,
        },
    )


def _make_purposes(
    vectors: FloatArray, values: FloatArray, both_signs: bool
) -> list[Purpose]:
    """Purposes of directions ``(n, d)``, in one or both signs."""
    purposes = []
    for i, (e, value) in enumerate(zip(vectors, values.tolist(), strict=True)):
        # Adding zero turns -0.0 into 0.0, so that equal options are equal files.
        purposes.append(Purpose(e + 0.0, f"#{i}+", eigenvalue=value))
        if both_signs:
            purposes.append(Purpose(-e + 0.0, f"#{i}-", eigenvalue=value))
    return purposes


def _check_env(env: Any, game: str, frame_skip: int) -> None:
    """Raise ValueError unless an environment plays the game as the options know it."""
    required = {
        "obs_type": "ram",
        "frameskip": frame_skip,
        "repeat_action_probability": 0.0,
    }
    defaults = {
        "full_action_space": False,
        "mode": None,
        "difficulty": None,
        "continuous": False,
    }
    settings = {**defaults, **getattr(env.spec, "kwargs", {})}

    differences = []
    if "game" not in settings or find_game_name(settings["game"]) != game:
        differences.append("another game")
    for name, value in {**required, **defaults}.items():
        if settings.get(name) != value:
            differences.append(f"{name}={settings.get(name)!r}")
    if not differences:
        return

    title = type(env.unwrapped).__name__ if env.spec is None else env.spec.id
    arguments = ", ".join(f"{name}={value!r}" for name, value in required.items())
    raise ValueError(
        f"these options do not fit {title} ({', '.join(differences)}): "
        f'they need gymnasium.make("ALE/{game}-v5", {arguments})'
    )


def _save_state(env: Any) -> Any:
    """Save the state of an Atari environment."""
    return env.clone_state()


def _restore_state(env: Any, state: Any) -> None:
    """Restore a saved state of an Atari environment."""
    env.restore_state(state)
