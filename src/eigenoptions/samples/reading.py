"""Readers of `discover`: of recorded data, and of environments that are sampled."""

from __future__ import annotations

import logging
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from eigenoptions.discovery.request import Request
from eigenoptions.discovery.sources import ReadSource
from eigenoptions.samples.from_samples import discover_samples
from eigenoptions.samples.sampling import Samples, read_samples, sample_environment

logger = logging.getLogger("eigenoptions")


def read_data(data: Any, request: Request) -> ReadSource:
    """Read recorded data, whatever `Transitions.of` accepts."""
    request = request.with_default_number()
    samples = read_samples(data, request.space, request.n_actions)
    request = replace(request, space=None, n_actions=None)
    return _make_source(samples, request)


def sample_source(source: Any, request: Request) -> ReadSource:
    """Sample an environment by a random walk, for `discover`."""
    samples = sample_environment(
        source,
        request.features,
        steps=50_000 if request.steps is None else request.steps,
        max_episode_steps=request.max_episode_steps,
        rng=request.rng,
        progress=request.progress,
    )
    if request.features is None:
        _warn_of_repeated(samples)
    return _make_source(samples, replace(request, steps=None, max_episode_steps=None))


def _make_source(samples: Samples, request: Request) -> ReadSource:
    """Return the source whose options are those of samples."""
    return ReadSource(
        table=None,
        kind="samples",
        request=request,
        is_environment=False,
        discover_room=partial(discover_samples, samples),
    )


# Mean number of visits from which on observations count as repeated.
_N_VISITS = 20


def _warn_of_repeated(samples: Samples) -> None:
    """Warn where vectors repeat: they are states, and cells would blur them."""
    obs = samples.transitions.obs
    if obs.ndim < 2:
        return
    n_different = len({row.tobytes() for row in np.ascontiguousarray(obs)})
    if n_different * _N_VISITS <= len(obs):
        logger.warning(
            "%s: the %s observations that were sampled are only %s different ones; "
            'discover(env, key="observation") makes a state of each, where cells '
            "put several together",
            samples.provenance["environment"],
            f"{len(obs):,}",
            f"{n_different:,}",
        )
