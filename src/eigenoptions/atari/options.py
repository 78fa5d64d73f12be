"""Directions in the memory of a game as options that look ahead in its emulator (paper, Section 5.2).

The options are a `LinearOptionSet` as in any other feature space: they can be saved, loaded and, bound to a Gymnasium
environment of the same game, used as actions through `OptionsWrapper`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eigenoptions.atari.emulator import Emulator, game_name
from eigenoptions.atari.protocol import ROWS, collect, complete, directions, rank
from eigenoptions.atari.ram import Ram
from eigenoptions.atari.starts import Start, find_starts
from eigenoptions.options.linear import LinearOptionSet
from eigenoptions.spectra import Spectrum

# The call that makes an environment to which options can be bound.
MAKE = 'gymnasium.make("ALE/{}-v5", obs_type="ram", frameskip=1, repeat_action_probability=0.0)'


def discover(
    game: str,
    starts: Sequence[Start] | None = None,
    transitions: int = ROWS,
    *,
    coding: Ram | None = None,
    both_signs: bool = True,
    rng: int = 0,
    progress: Callable[[int, int], object] | None = None,
) -> LinearOptionSet:
    """Discover the eigenoptions of a game as in Appendix E: `find_starts`, `collect`, `directions`, `atari_options`.

    Parameters
    ----------
    game
        Name of the game.
    starts
        Start states; None: six that `find_starts` finds.
    transitions
        Number of new transitions to collect, and of rows of T.
    coding
        The feature map phi of memory; None: the paper's 1,024 bits.
    both_signs
        Whether to include the negation of each direction.
    rng
        Seed of all random choices.
    progress
        Called with new transitions seen and wanted.

    Examples
    --------
    >>> discover("Freeway", [Start("Freeway", (0,) * 60, (14,), (6,))], 300, both_signs=False)[:2].labels
    ('#0+', '#1+')
    """
    first = find_starts(game, rng=rng) if starts is None else starts
    gram = collect(game, first, transitions, rng=rng, coding=coding, progress=progress)
    provenance = {"seed": rng, "rows": transitions}
    return atari_options(directions(gram, transitions, rng), game, both_signs, provenance=provenance)


def atari_options(
    spectrum: Spectrum | ArrayLike,
    game: str,
    both_signs: bool = True,
    null: bool = False,
    *,
    coding: Ram | None = None,
    provenance: dict[str, Any] | None = None,
) -> LinearOptionSet:
    """Options of a game from singular directions, the largest singular value first, + before - (Section 5.2).

    They look ahead by one frame, gamma = 0, and terminate where no action has a positive reward. `bind` them to an
    environment before they act.

    Parameters
    ----------
    spectrum
        Spectrum from `directions`; or directions ``(n, d)`` themselves, such as those of `random_directions`.
    game
        Name of the game, which goes into the file; `bind` refuses an environment of another game.
    both_signs
        Whether to include the negation of each direction.
    null
        Whether to include the null space, whose singular value is zero, as the paper's 1,024 options do. On the
        collected transitions its reward is zero, so these options terminate at once.
    coding
        The feature map phi; None: that of the spectrum, else the paper's bits.
    provenance
        Further entries for the file.

    Returns
    -------
    LinearOptionSet
        Labels count as the paper does, ``#445+`` for direction 445 from 0; ``eigenvalues`` are those of ``T'T / 2``.

    Examples
    --------
    >>> from eigenoptions.atari import collect, directions, find_starts
    >>> gram = collect("Freeway", find_starts("Freeway", n=2, bursts=10), n=500, longest=400)
    >>> atari_options(directions(gram, sample=500), "Freeway")
    LinearOptionSet(368 look-ahead options on 1024 features: #0+, #0-, #1+, #1-, #2+, #2-, ...)
    """
    name = game_name(game)
    values: NDArray[np.float64]
    if isinstance(spectrum, Spectrum):
        rows = complete(spectrum).T if null else spectrum.vectors[:, spectrum.n_zero :].T[::-1]
        values = np.zeros(len(rows))
        values[: rank(spectrum)] = spectrum.values[spectrum.n_zero :][::-1]
        phi: Any = coding or spectrum.features or Ram()
        kind = "singular"
    else:
        rows = np.asarray(spectrum, dtype=np.float64)
        values = np.full(len(rows), np.nan)
        phi = coding or Ram()
        kind = "given"
    if rows.ndim != 2 or not len(rows):
        raise ValueError(f"directions must have shape (n, d) with n at least 1, got {rows.shape}")
    if isinstance(phi, Ram) and phi.width != rows.shape[1]:
        raise ValueError(
            f"directions have {rows.shape[1]} entries, but the coding makes {phi.width} features"
        )
    signs = np.array([1.0, -1.0]) if both_signs else np.array([1.0])
    marks = "+-" if both_signs else "+"
    # Adding zero turns -0.0 into 0.0, so that equal options are equal files.
    direction = (rows[:, None, :] * signs[:, None]).reshape(-1, rows.shape[1]) + 0.0
    return LinearOptionSet(
        direction,
        phi,
        Emulator(name).n_actions,
        labels=tuple(f"#{i}{mark}" for i in range(len(rows)) for mark in marks),
        eigenvalues=np.repeat(values, len(signs)),
        provenance={"method": "atari", "game": name, "directions": kind, "gamma": 0.0, **(provenance or {})},
    )


def bind(options: LinearOptionSet, env: Any) -> LinearOptionSet:
    """The options in a Gymnasium environment of their game: they look ahead by saving and restoring its emulator.

    The environment must be played as the options were found: memory as observation, frame skip 1, minimal action set
    and no sticky actions. With sticky actions a look ahead would either foresee random numbers that the player cannot
    see, or differ from what happens, so they are refused. After a look ahead ``env.render()`` shows the last action
    tried, until the next step.

    Parameters
    ----------
    options
        From `atari_options` or `load_linear_options`.
    env
        Such as ``gymnasium.make("ALE/Freeway-v5", obs_type="ram", frameskip=1, repeat_action_probability=0.0)``.
        Wrapped in `OptionsWrapper` it takes options as actions.

    Examples
    --------
    >>> import ale_py, gymnasium  # the first registers the environments of the second
    >>> up = np.zeros((1, 1024))
    >>> up[0, 8 * 4] = -1.0  # bit 0 of byte 4 is off while the joystick is pushed up
    >>> options = atari_options(up, "Freeway", both_signs=False)
    >>> env = gymnasium.make("ALE/Freeway-v5", obs_type="ram", frameskip=1, repeat_action_probability=0.0)
    >>> obs, info = env.reset(seed=0)
    >>> bind(options, env)[0].act(obs)
    1
    """
    game = options.provenance.get("game")
    if game is None:
        raise ValueError("these options have no game in their provenance: make them with atari_options")
    base = getattr(env, "unwrapped", env)
    if not (hasattr(base, "ale") and hasattr(base, "clone_state")):
        raise ValueError(
            f"options of {game} need an Atari environment, {MAKE.format(game)}, got {_title(env)}"
        )
    wrong = _differences(base, game)
    if wrong:
        raise ValueError(
            f"options of {game} do not fit {_title(env)}: {'; '.join(wrong)}. Make it with {MAKE.format(game)}"
        )
    return options.look_ahead(env, save=_save, restore=_restore)


def _differences(base: Any, game: str) -> list[str]:
    """How an environment differs from the game as the options know it; empty if in nothing."""
    given = getattr(base, "_ezpickle_kwargs", {})
    wrong = []
    other = game_name(given.get("game", getattr(base, "_game", "")))
    if other != game:
        wrong.append(f"it is another game, {other}")
    if given.get("obs_type") != "ram":
        wrong.append(f"observations are {given.get('obs_type')}, not memory (ram)")
    if given.get("frameskip") != 1:
        wrong.append(f"frame skip is {given.get('frameskip')}, not 1")
    sticky = base.ale.getFloat("repeat_action_probability")
    if sticky:
        wrong.append(f"actions are sticky ({sticky:g}), which a look ahead cannot foresee")
    for what in ("mode", "difficulty"):
        if given.get(what):
            wrong.append(f"{what} is {given[what]}, not the game's own")
    if given.get("full_action_space") or given.get("continuous"):
        wrong.append("actions are not the game's minimal set")
    return wrong


def _title(env: Any) -> str:
    spec = getattr(env, "spec", None)
    return str(spec.id) if spec is not None else type(getattr(env, "unwrapped", env)).__name__


def _save(base: Any) -> Any:
    return base.clone_state()


def _restore(base: Any, state: Any) -> None:
    base.restore_state(state)
