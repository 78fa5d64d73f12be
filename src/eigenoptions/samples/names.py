"""What the parts of recorded data are called, and what no reader understands.

A name that nobody understands may say where an episode ends. Where the next row is
taken as the next observation, that would join two episodes, so it is an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

# In the words of this library, D4RL, Minari, Gymnasium, Stable-Baselines3, CleanRL,
# RLlib, Tianshou, RLDS and Dreamer. Of several names of an observation, an action or a
# reward the first is read; of several names of an end all count.
NAMES = {
    "obs": ("obs", "observations", "observation", "states", "state", "image"),
    "action": ("action", "actions", "act", "acts"),
    "next_obs": (
        "next_obs",
        "next_observations",
        "obs_next",
        "new_obs",
        "next_observation",
        "next_states",
        "next_state",
    ),
    "reward": ("reward", "rewards", "rew"),
    "terminated": (
        "terminated",
        "terminateds",
        "terminals",
        "terminal",
        "terminations",
        "termination",
        "is_terminated",
    ),
    "truncated": (
        "truncated",
        "truncateds",
        "truncations",
        "truncation",
        "timeouts",
        "timeout",
        "timelimit.truncated",
        "is_truncated",
    ),
    # Terminated or truncated.
    "done": ("done", "dones"),
    # The first and the last row of an episode.
    "first": ("is_first", "episode_starts", "episode_start"),
    "last": ("is_last",),
    # Of RLDS and Dreamer: whether the *observation* of the row is terminal.
    "terminal_obs": ("is_terminal",),
    "episode": (
        "episode",
        "episodes",
        "episode_id",
        "episode_index",
        "episode_number",
        "ep",
        "ep_id",
        "eps_id",
        "trajectory",
        "trajectory_id",
        "traj",
        "traj_id",
        # RLlib numbers agents and fragments, too.
        "agent_index",
        "unroll_id",
    ),
    # Counts the steps of an episode.
    "step": ("step", "steps", "t", "timestep", "timesteps", "time_step", "step_id"),
}

# Parts that say where episodes end, with one truth value in each row.
FLAGS = ("terminated", "truncated", "done", "first", "last", "terminal_obs")

# What agents and recorders keep beside their steps, and what says nothing about ends.
_HARMLESS = {
    "action_dist_inputs",
    "action_log_prob",
    "action_logp",
    "action_mask",
    "action_masks",
    "action_prob",
    "advantages",
    "discount",
    "discounts",
    "env_infos",
    "log_prob",
    "log_probs",
    "logprob",
    "logprobs",
    "policy",
    "prev_actions",
    "prev_rewards",
    "returns",
    "seq_lens",
    "value",
    "value_targets",
    "values",
    "vf_preds",
    "weights",
}
_HARMLESS_PREFIXES = ("info", "metadata")


def find_names(data: Mapping[str, Any], part: str) -> list[str]:
    """The names in the data that stand for a part, most common name first."""
    given: dict[str, str] = {}
    for name in data:
        if isinstance(name, str):
            given.setdefault(name.lower(), name)
    known = [given[name] for name in NAMES[part] if name in given]
    return [name for name in known if data[name] is not None]


def find_part(data: Mapping[str, Any], part: str) -> Any:
    """A part of a dict under the first of its names, or None."""
    names = find_names(data, part)
    return data[names[0]] if names else None


def find_parts(data: Mapping[str, Any], part: str) -> dict[str, Any]:
    """Everything in a dict that stands for a part, by its name."""
    return {name: data[name] for name in find_names(data, part)}


def is_harmless(name: object) -> bool:
    """Whether a name is known, and what it holds is not needed."""
    lower = str(name).lower()
    return lower in _HARMLESS or lower.startswith(_HARMLESS_PREFIXES)


def list_unknown(data: Mapping[str, Any], n_rows: int) -> tuple[str, ...]:
    """Names of what is not read although it has a value in each of `n_rows` rows."""
    understood = set()
    for part in NAMES:
        names = find_names(data, part)
        # Of two observations, one is read.
        is_single = part in ("obs", "action", "next_obs", "reward")
        understood.update(names[:1] if is_single else names)

    unknown = []
    for name, value in data.items():
        if name in understood or is_harmless(name) or value is None:
            continue
        if _count_rows(value) in (n_rows, None):
            unknown.append(str(name))
    return tuple(unknown)


def _count_rows(value: Any) -> int | None:
    """The length of a value: 0 for a single one, None for a dict."""
    if isinstance(value, Mapping):
        return None
    is_sequence = hasattr(value, "__len__") and not isinstance(value, str | bytes)
    # Arrays of no dimension have the method, and no length.
    if not is_sequence or (hasattr(value, "shape") and not np.shape(value)):
        return 0
    return len(value)


def check_all_known(data: Mapping[str, Any], n_rows: int) -> None:
    """Raise ValueError for names that may say where an episode ends."""
    unknown = list_unknown(data, n_rows)
    if not unknown:
        return
    names = ", ".join(repr(name) for name in unknown[:8])
    if len(unknown) > 8:
        names = f"{names} and {len(unknown) - 8} more"
    raise ValueError(
        f"{names} may say where episodes end, and without next_obs that must be clear: "
        "call it episode, step, terminated, truncated, is_first or is_last, or leave "
        "it out"
    )
