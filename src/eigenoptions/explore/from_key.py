"""The reader of ``discover(env, key=...)``: an environment is explored by a key."""

from __future__ import annotations

import logging
from contextlib import closing, nullcontext
from pathlib import Path
from typing import Any

from eigenoptions._types import Progress, Randomness
from eigenoptions._validation import check_int
from eigenoptions.discovery.sources import (
    ReadSource,
    check_has_reset,
    is_environment_id,
    is_environment_source,
    take_settings,
)
from eigenoptions.discovery.tables import Request
from eigenoptions.envs.families import Key
from eigenoptions.explore.explorer import Explorable, Explorer
from eigenoptions.explore.found import Found
from eigenoptions.explore.from_found import read_found
from eigenoptions.mdp import maze

logger = logging.getLogger("eigenoptions")


def explore_source(source: Any, key: str | Key, request: Request) -> ReadSource:
    """Explore an environment whose states are those of a key."""
    if isinstance(source, str | Path) and not is_environment_id(source):
        source = maze(source, rng=request.rng)
    if isinstance(source, Found):
        raise ValueError(
            f"{source!r} has a key already: leave out key, or give the environment"
        )
    if request.seed is not None:
        check_has_reset(source)
    is_single = is_environment_source(source) and not hasattr(source, "num_envs")
    if not is_single:
        raise ValueError(
            "key= is for a single environment, its id, or a function that makes it, "
            f"got {type(source).__name__}"
        )
    if "features" in request.settings:
        raise ValueError("key= makes a table, and features= does without: give one")

    exploring, request = take_settings(request, ("steps",))
    found = explore_key(
        source,
        key,
        seed=request.seed,
        rng=request.rng,
        progress=request.progress,
        **exploring,
    )
    return read_found(found, request)


def explore_key(
    env: Explorable,
    key: str | Key | None,
    *,
    seed: int | None,
    rng: Randomness | None,
    steps: int = 20_000,
    progress: Progress | None = None,
    check_every: int = 100,
) -> Found:
    """Explore an environment until all states of a key are known, or steps are over.

    Parameters
    ----------
    env : str, gymnasium.Env, callable or MDP
        The environment.
    key : str, callable or None
        How its states are recognised; None: as its family does.
    seed, rng
        As in `explore`.
    steps : int, default=20000
        Most steps.
    progress : callable, default=None
        Called as ``progress(done, steps)``.
    check_every : int, default=100
        Steps after which it is asked whether all is known.
    """
    steps = check_int("steps", steps)
    explorer = Explorer(env, key=key, seed=seed, rng=rng)
    with nullcontext() if explorer.env is env else closing(explorer.env):
        for step in range(1, steps + 1):
            explorer.step()
            if progress is not None:
                progress(step, steps)
            if step % check_every == 0 and explorer.is_known:
                break

    found = explorer.found
    n_untried = int((found.untried & ~found.given_up).sum())
    if n_untried:
        logger.warning(
            "%s: options are of the %d states that explore found in %d steps, with %d "
            "actions untried; more steps= show more",
            found.about.name,
            len(found.seen),
            found.n_steps,
            n_untried,
        )
    return found
