"""The reader of ``discover(env, key=...)``: an environment is explored by a key."""

from __future__ import annotations

import logging
from contextlib import closing, nullcontext
from dataclasses import replace
from typing import Any

from eigenoptions._types import Progress, Randomness
from eigenoptions._validation import check_int
from eigenoptions.discovery.request import Request
from eigenoptions.discovery.sources import ReadSource, is_environment_source
from eigenoptions.envs.families import Key
from eigenoptions.explore.explorer import Explorable, Explorer
from eigenoptions.explore.found import Found
from eigenoptions.explore.from_found import read_found

logger = logging.getLogger("eigenoptions")


def explore_source(source: Any, request: Request) -> ReadSource:
    """Explore an environment whose states are those of a key."""
    if isinstance(source, Found):
        raise ValueError(
            f"{source!r} has a key already: leave out key, or give the environment"
        )
    is_single = is_environment_source(source) and not hasattr(source, "num_envs")
    if not is_single:
        raise ValueError(
            "key= is for a single environment, its id, or a function that makes it, "
            f"got {type(source).__name__}"
        )
    if request.features is not None:
        raise ValueError("key= makes a table, and features= does without: give one")
    steps = 20_000 if request.steps is None else request.steps
    key = request.key
    request = replace(request, steps=None, key=None)
    request.check_use("a table that is explored")

    found = explore_key(
        source,
        key,
        seed=request.seed,
        rng=request.rng,
        steps=steps,
        progress=request.progress,
    )
    return read_found(found, request)


# Steps after which it is asked whether all is known.
_CHECK_EVERY = 100


def explore_key(
    env: Explorable,
    key: str | Key | None,
    *,
    seed: int | None,
    rng: Randomness | None,
    steps: int,
    progress: Progress | None = None,
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
    steps : int
        Most steps.
    progress : callable, default=None
        Called as ``progress(done, steps)``.
    """
    steps = check_int("steps", steps)
    explorer = Explorer(env, key=key, seed=seed, rng=rng)
    with nullcontext() if explorer.env is env else closing(explorer.env):
        for step in range(1, steps + 1):
            explorer.step()
            if progress is not None:
                progress(step, steps)
            if step % _CHECK_EVERY == 0 and explorer.is_known:
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
