"""Readers of `discover`: of recorded data, and of environments that are sampled."""

from __future__ import annotations

import logging
from functools import partial
from typing import Any

import numpy as np

from eigenoptions.discovery.sources import ReadSource, take_settings
from eigenoptions.discovery.tables import Request
from eigenoptions.samples.from_samples import discover_samples
from eigenoptions.samples.sampling import Samples, read_samples, sample_environment

logger = logging.getLogger("eigenoptions")


def read_data(data: Any, request: Request) -> ReadSource:
    """Read recorded data, whatever `Transitions.of` accepts."""
    # Trained features have a number of their own.
    if request.settings.get("features") != "deep":
        request = request.with_default_number()
    declared, request = take_settings(request, ("space", "n_actions"))
    return _make_source(read_samples(data, **declared), request)


def sample_source(source: Any, request: Request) -> ReadSource:
    """Sample an environment by a random walk, for `discover`."""
    names = ("steps", "n_envs", "max_episode_steps")
    collecting, request = take_settings(request, names)
    samples = sample_environment(
        source,
        request.settings.get("features"),
        rng=request.rng,
        progress=request.progress,
        **collecting,
    )
    if "features" not in request.settings:
        _warn_of_repeated(samples)
    return _make_source(samples, request)


def _make_source(samples: Samples, request: Request) -> ReadSource:
    """Return the source whose options are those of samples."""
    return ReadSource(
        table=None,
        kind="samples",
        request=request,
        is_environment=False,
        discover_room=partial(discover_samples, samples),
    )


def _warn_of_repeated(samples: Samples, n_visits: int = 20) -> None:
    """Warn where vectors repeat: they are states, and cells would blur them.

    Parameters
    ----------
    samples : Samples
        Steps of an environment.
    n_visits : int, default=20
        Mean number of visits from which on observations count as repeated.
    """
    obs = samples.transitions.obs
    if obs.ndim < 2:
        return
    n_different = len({row.tobytes() for row in np.ascontiguousarray(obs)})
    if n_different * n_visits <= len(obs):
        logger.warning(
            "%s: the %s observations that were sampled are only %s different ones; "
            'discover(env, key="observation") makes a state of each, where cells '
            "put several together",
            samples.provenance["environment"],
            f"{len(obs):,}",
            f"{n_different:,}",
        )
