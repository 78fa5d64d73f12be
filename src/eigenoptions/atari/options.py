"""Directions in the memory of a game as options that look ahead in its emulator (paper, Section 5.2).

The options are a `LinearOptionSet` as in any other feature space: they can be saved, loaded and, bound to a Gymnasium
environment of the same game, used as actions through `OptionsWrapper`.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from operator import methodcaller
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from eigenoptions._validation import check_int
from eigenoptions.atari.emulator import Emulator, Progress, game_name
from eigenoptions.atari.protocol import ROWS, collect, complete, directions, rank
from eigenoptions.atari.ram import Ram
from eigenoptions.atari.starts import Start, find_starts
from eigenoptions.options.linear import LinearOptionSet
from eigenoptions.spectra import Spectrum

# The call that makes an environment to which options can be bound.
MAKE = 'gymnasium.make("ALE/{}-v5", obs_type="ram", frameskip={}, repeat_action_probability=0.0)'


def discover(
    game: str,
    starts: Sequence[Start] | None = None,
    transitions: int = ROWS,
    *,
    coding: Ram | None = None,
    both_signs: bool = True,
    rng: int = 0,
    progress: Progress | None = None,
) -> LinearOptionSet:
    """Discover the eigenoptions of a game as in Appendix E: `find_starts`, `collect`, `directions`, `atari_options`.

    Parameters
    ----------
    game, starts, transitions
        Name of the game, start states (None: six that `find_starts` finds), and number of new transitions to collect,
        which are the rows of T.
    coding, rng, progress
        As in `collect`; `rng` is the seed of all random choices.
    both_signs
        Whether to include the negation of each direction.

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
    environment before they act. Labels count as the paper does, ``#445+`` for direction 445 from 0; ``eigenvalues`` are
    those of ``T'T / 2``.

    Parameters
    ----------
    spectrum, coding
        Spectrum from `directions`, or directions ``(n, d)`` themselves; and the feature map phi (None: that of the
        spectrum, else the paper's bits).
    game
        Name of the game, which goes into the file; `bind` refuses an environment of another game.
    both_signs, null
        Whether to include the negation of each direction, and the null space, as the paper's 1,024 options do. On the
        collected transitions its reward is zero, so these options terminate at once.
    provenance
        Further entries for the file.

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
    else:
        rows = np.asarray(spectrum, dtype=np.float64)
        values = np.full(len(rows), np.nan)
        phi = coding or Ram()
    if rows.ndim != 2 or not len(rows):
        raise ValueError(f"directions must have shape (n, d) with n at least 1, got {rows.shape}")
    d = rows.shape[1]
    if isinstance(phi, Ram) and phi.width != d:
        raise ValueError(f"directions have {d} entries, but the coding makes {phi.width} features")
    signs = {"+": 1.0, "-": -1.0} if both_signs else {"+": 1.0}
    # Adding zero turns -0.0 into 0.0, so that equal options are equal files.
    direction = (rows[:, None] * np.array([*signs.values()])[:, None]).reshape(-1, d) + 0.0
    labels = tuple(f"#{i}{mark}" for i in range(len(rows)) for mark in signs)
    kind = "singular" if isinstance(spectrum, Spectrum) else "given"
    about = {"method": "atari", "game": name, "directions": kind, "gamma": 0.0, **(provenance or {})}
    emulator, eigenvalues = Emulator(name), np.repeat(values, len(signs))
    # Those of an environment: it has no action that the emulator added.
    n_actions = emulator.n_actions - emulator.noop_added
    return LinearOptionSet(
        direction, phi, n_actions, labels=labels, eigenvalues=eigenvalues, provenance=about
    )


def bind(options: LinearOptionSet, env: Any) -> LinearOptionSet:
    """Options from `atari_options` in a Gymnasium environment of their game, whose emulator they save and restore.

    The environment must be played as the options were found: memory as observation, frame skip 1 (or the ``hold`` of
    their provenance, the frames that an action was held), minimal action set and no sticky actions. With sticky
    actions a look ahead would either foresee random numbers that the player cannot see, or differ from what happens,
    so they are refused. Wrapped in `OptionsWrapper` the environment takes options as actions. After a look ahead
    ``env.render()`` shows the last action tried, until the next step.

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
    hold = check_int("hold in the provenance of the options", options.provenance.get("hold", 1))
    spec, make = getattr(env, "spec", None), MAKE.format(game, hold)
    title = spec.id if spec is not None else type(base).__name__
    if not (hasattr(base, "ale") and hasattr(base, "clone_state")):
        raise ValueError(f"options of {game} need an Atari environment, {make}, got {title}")
    wrong = "; ".join(_differences(base, game, hold))
    if wrong:
        raise ValueError(f"options of {game} do not fit {title}: {wrong}. Make it with {make}")
    return options.look_ahead(env, save=methodcaller("clone_state"), restore=_restore)


def _differences(base: Any, game: str, hold: int) -> list[str]:
    """How an environment differs from the game as the options know it; empty if in nothing."""
    given = defaultdict(lambda: None, getattr(base, "_ezpickle_kwargs", {}))
    other = game_name(given["game"] or getattr(base, "_game", ""))
    sticky = base.ale.getFloat("repeat_action_probability")
    differences = {
        f"it is another game, {other}": other != game,
        f"observations are {given['obs_type']}, not memory (ram)": given["obs_type"] != "ram",
        f"frame skip is {given['frameskip']}, not {hold}": given["frameskip"] != hold,
        f"actions are sticky ({sticky:g}), which a look ahead cannot foresee": sticky,
        f"mode is {given['mode']}, not the game's own": given["mode"],
        f"difficulty is {given['difficulty']}, not the game's own": given["difficulty"],
        "actions are not the game's minimal set": given["full_action_space"] or given["continuous"],
    }
    return [text for text, differs in differences.items() if differs]


def _restore(base: Any, state: Any) -> None:
    base.restore_state(state)
