"""`clone`: an on-policy agent begins with the ways that `explore` found."""

from __future__ import annotations

import logging
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.sparse import csr_array, eye_array
from scipy.sparse.linalg import spsolve
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.on_policy_algorithm import OnPolicyAlgorithm
from stable_baselines3.common.utils import obs_as_tensor

from eigenoptions._types import FloatArray, IndexArray, IntegerArray, Progress
from eigenoptions._validation import check_float, check_int
from eigenoptions.agents.sb3.observations import (
    Observations,
    check_same_task,
    stack_observations,
    take_rows,
)
from eigenoptions.explore.found import Found, make_reward_mdp
from eigenoptions.explore.found_vectors import VectorFound
from eigenoptions.mdp import reachable
from eigenoptions.mdp.chains import compute_policy_transitions
from eigenoptions.options import TERMINATE

logger = logging.getLogger("eigenoptions")


@dataclass(frozen=True)
class Cloned:
    """How well an agent's network fits the known ways; its most likely actions count.

    Parameters
    ----------
    n_states : int
        Number of states from which a way to what was rewarded is known.
    accuracy : float
        Share of them in which the agent takes the action of the known way.
    possible_accuracy : float
        The highest accuracy that a function of the observation has. It is below 1 where
        states with different actions look the same.
    reaches_reward : bool
        Whether the agent's actions, its last one included, lead from the start to a
        reward, in the table that was found.
    value_error : float
        Root of the mean squared error of the agent's values.
    least_probability : float
        The lowest probability of a known action on the way from the start; 0 if no way
        from there is known. Where it is low, training soon undoes what was fitted.
    """

    n_states: int
    accuracy: float
    possible_accuracy: float
    reaches_reward: bool
    value_error: float
    least_probability: float


class _KnownPaths(NamedTuple):
    """What is fitted, one row for each state from which a way is known."""

    states: IndexArray
    observations: Observations
    actions: NDArray[Any]
    values: FloatArray
    weights: FloatArray


def clone(
    agent: BaseAlgorithm,
    found: Found,
    *,
    steps: int = 300,
    learning_rate: float = 0.002,
    start_weight: float = 0.5,
    value_weight: float = 0.5,
    batch_size: int = 1024,
    min_accuracy: float = 0.9,
    min_probability: float = 0.75,
    progress: Progress | None = None,
) -> Cloned:
    """Fit policy and values of an on-policy agent to the ways that `explore` found.

    In every state from which a rewarded step can be reached in ``found.mdp``, the
    policy is fitted to the action of ``found.option()``, and the value to the
    discounted rewards along this way. ``agent.learn`` then goes on from there. The fit
    depends on the agent's seed alone.

    Explore the environment with the same observation wrappers as the agent's. Every
    observation is that of the first visit to its state.

    Parameters
    ----------
    agent : stable_baselines3.common.on_policy_algorithm.OnPolicyAlgorithm
        PPO, A2C, TRPO or MaskablePPO with discrete actions, which changes.
    found : Found
        What ``explore(env, steps, until="reward")`` returned.
    steps : int, default=300
        Number of steps of Adam.
    learning_rate : float, default=0.002
        Learning rate of these steps.
    start_weight : float, default=0.5
        Weight of the states on the way from the start, from 0 to 1. The rest is that of
        all states together, those on this way among them.
    value_weight : float, default=0.5
        Weight of the squared error of values beside the cross-entropy of actions.
    batch_size : int, default=1024
        Most states in a batch.
    min_accuracy : float, default=0.9
        A warning says why the fit is poor where the accuracy is lower, or where the
        agent's actions do not lead from the start to what was rewarded.
    min_probability : float, default=0.75
        A warning says so where a known action on the way from the start has a lower
        probability.
    progress : callable, default=None
        Called as ``progress(done, steps)``.

    Returns
    -------
    Cloned
        How well the agent fits.

    Examples
    --------
    >>> import eigenoptions as eo
    >>> from stable_baselines3 import PPO
    >>> env = eo.envs.MazeEnv("four-rooms")
    >>> found = eo.explore(env, 1000, until="reward")
    >>> agent = PPO("MlpPolicy", env, seed=0)
    >>> clone(agent, found).reaches_reward
    True
    """
    steps = check_int("steps", steps)
    batch_size = check_int("batch_size", batch_size)
    learning_rate = check_float("learning_rate", learning_rate, above=0)
    start_weight = check_float("start_weight", start_weight, minimum=0, maximum=1)
    value_weight = check_float("value_weight", value_weight, minimum=0)
    min_accuracy = check_float("min_accuracy", min_accuracy, minimum=0, maximum=1)
    min_probability = check_float(
        "min_probability", min_probability, minimum=0, maximum=1
    )
    policy = _check_agent(agent)
    check_same_task(agent, found)
    paths = _collect_paths(agent, found, start_weight)

    optimizer = torch.optim.Adam(policy.parameters(), lr=learning_rate)
    rng = np.random.default_rng(agent.seed)
    policy.set_training_mode(True)
    for step in range(1, steps + 1):
        batch = _draw_batch(paths, batch_size, rng)
        loss = _compute_loss(policy, batch, value_weight)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        if progress is not None:
            progress(step, steps)
    policy.set_training_mode(False)

    if isinstance(found, VectorFound):
        cloned = _measure_vector_fit(policy, paths, found)
    else:
        cloned = _measure_fit(policy, paths, found)
    _warn_of_poor_fit(cloned, min_accuracy, min_probability, steps)
    return cloned


def _check_agent(agent: BaseAlgorithm) -> Any:
    """Return the policy of an agent that learns from its own policy."""
    name = type(agent).__name__
    if not isinstance(agent, OnPolicyAlgorithm):
        raise ValueError(f"{name} learns off policy: use fill_replay(agent, found)")
    if hasattr(agent.policy, "lstm_actor"):
        raise ValueError(
            f"{name} has a memory, and the known ways have none: use PPO, or no clone"
        )
    normalizer = agent.get_vec_normalize_env()
    if normalizer is not None:
        raise ValueError(
            "VecNormalize changes what the agent sees while it learns, so that nothing "
            "fits: make the agent without it"
        )
    return agent.policy


def _collect_paths(agent: Any, found: Found, start_weight: float) -> _KnownPaths:
    """Return the states from which a way is known, and what is fitted there."""
    if isinstance(found, VectorFound):
        return _collect_vector_paths(agent, found)
    policy = found.option().policy
    # Rows of `found.seen`, and of the observations, which are in the same order.
    rows = np.flatnonzero(policy[found.seen] >= 0)
    if not len(rows):
        raise ValueError(
            f"no way to what was rewarded is known in {found!r}: explore further, "
            'explore(env, steps, known=found, until="known")'
        )

    states = found.seen[rows]
    values = _compute_values(found, policy, agent.gamma)
    return _KnownPaths(
        states=states,
        observations=take_rows(stack_observations(agent, found), rows),
        actions=policy[states],
        values=values[states],
        weights=_weigh_states(found, policy, states, start_weight),
    )


def _collect_vector_paths(agent: Any, found: VectorFound) -> _KnownPaths:
    """Return what the option does at observations of steps."""
    paths = found.imagine_paths()
    if not len(paths.rows):
        raise ValueError(
            f"no way to what was rewarded is known in {found!r}: explore further, "
            'explore(env, steps, known=found, until="known")'
        )
    actions: NDArray[Any] = paths.actions
    if found.controls.is_box:
        actions = np.stack([found.controls.given[code] for code in paths.actions])
    n_paths = len(paths.rows)
    return _KnownPaths(
        states=np.arange(n_paths),
        observations=stack_observations(
            agent, found, list(found.reader.write(paths.rows))
        ),
        actions=actions,
        values=_discount_rewards(found, paths.times, agent.gamma),
        weights=np.full(n_paths, 1.0 / n_paths),
    )


def _discount_rewards(
    found: VectorFound, times: FloatArray, gamma: float
) -> FloatArray:
    """Return the discounted rewards of ways that take some steps.

    All steps give the ordinary reward, and the last one the mean of those that were
    rewarded.
    """
    is_rewarded = found.is_step_rewarded
    last = found.log.reward[is_rewarded].mean()
    ordinary = float(np.median(found.log.reward[~is_rewarded]))
    n_before = np.maximum(times - 1.0, 0.0)
    before = n_before if gamma == 1 else (1.0 - gamma**n_before) / (1.0 - gamma)
    values: FloatArray = ordinary * before + last * gamma**n_before
    return values


def _compute_values(found: Found, policy: IntegerArray, gamma: float) -> FloatArray:
    """Return the expected discounted rewards of a policy up to the first, ``(S,)``.

    The reward of an action is its mean in all steps that were taken.
    """
    numbers = found.numbers
    assert numbers.reward is not None
    moves = _follow(found, policy)
    n_states = len(policy)
    is_on_path = numbers.action == policy[numbers.obs]
    states = numbers.obs[is_on_path]
    n_tries = np.bincount(states, minlength=n_states)
    sums = np.bincount(states, numbers.reward[is_on_path], minlength=n_states)
    rewards = sums / np.maximum(n_tries, 1)

    system = eye_array(n_states, format="csc") - gamma * moves.tocsc()
    values: FloatArray = spsolve(system, rewards)
    return values


def _follow(found: Found, policy: IntegerArray) -> csr_array:
    """Transition probabilities ``(S, S)`` of a policy until a reward or an end.

    Rows of steps that are rewarded sum to less than 1, by as often as they are.
    """
    aim = make_reward_mdp(found)
    n_states = len(policy)
    n_listed = found.mdp.n_listed
    padded = np.full(aim.n_states, TERMINATE)
    padded[:n_listed] = policy[:n_listed]
    moves = compute_policy_transitions(aim, padded)[:n_listed, :n_listed]
    moves.resize((n_states, n_states))
    return moves


def _weigh_states(
    found: Found, policy: IntegerArray, states: IndexArray, start_weight: float
) -> FloatArray:
    """Return the weights of states with a known way, whose sum is 1.

    The agent begins at the start. Where states look the same, and cannot all fit, those
    on the way from there should.
    """
    weights = np.full(len(states), 1.0 / len(states))
    visits = _count_visits(found, policy)[states]
    if not visits.any():
        return weights
    weights *= 1.0 - start_weight
    weights += start_weight * visits / visits.sum()
    return weights


def _count_visits(found: Found, policy: IntegerArray) -> FloatArray:
    """Expected visits ``(S,)`` on the way from the start; 0 where none is known."""
    n_states = len(policy)
    start = found.mdp.start
    if start is None or policy[start] < 0:
        return np.zeros(n_states)

    # Of the start, and of the successors of what is visited.
    is_start = np.zeros(n_states)
    is_start[start] = 1.0
    moves = _follow(found, policy)
    system = eye_array(n_states, format="csc") - moves.T.tocsc()
    visits: FloatArray = spsolve(system, is_start)
    return visits


def _draw_batch(
    paths: _KnownPaths, batch_size: int, rng: np.random.Generator
) -> _KnownPaths:
    """Return all states, or where they are too many, some drawn by their weights."""
    n_states = len(paths.states)
    if n_states <= batch_size:
        return paths
    rows = rng.choice(n_states, batch_size, p=paths.weights)
    return _KnownPaths(
        states=paths.states[rows],
        observations=take_rows(paths.observations, rows),
        actions=paths.actions[rows],
        values=paths.values[rows],
        weights=np.full(batch_size, 1.0 / batch_size),
    )


def _compute_loss(policy: Any, batch: _KnownPaths, value_weight: float) -> torch.Tensor:
    """Return the loss of actions and values in the states of a batch."""
    observations = obs_as_tensor(batch.observations, policy.device)
    actions = torch.as_tensor(batch.actions, device=policy.device)
    targets = torch.as_tensor(batch.values, device=policy.device).float()
    weights = torch.as_tensor(batch.weights, device=policy.device).float()

    values, log_probabilities, _ = policy.evaluate_actions(observations, actions)
    squared_errors = torch.square(values.flatten() - targets)
    losses = value_weight * squared_errors - log_probabilities
    return torch.sum(weights * losses)


def _measure_fit(policy: Any, paths: _KnownPaths, found: Found) -> Cloned:
    """Return how well the network fits."""
    observations = obs_as_tensor(paths.observations, policy.device)
    with torch.no_grad():
        actions = policy.get_distribution(observations).mode().cpu().numpy()
        values = policy.predict_values(observations).cpu().numpy().ravel()
        known_actions = torch.as_tensor(paths.actions, device=policy.device)
        _, log_probabilities, _ = policy.evaluate_actions(observations, known_actions)
    probabilities = log_probabilities.exp().cpu().numpy()

    known = np.full(found.mdp.n_states, -1)
    known[paths.states] = paths.actions
    is_on_path = _count_visits(found, known)[paths.states] > 0
    least_probability = 0.0
    if is_on_path.any():
        least_probability = float(probabilities[is_on_path].min())

    # A table has no moves of options, so that those lead nowhere.
    aim = make_reward_mdp(found)
    greedy = np.full(aim.n_states, TERMINATE)
    greedy[paths.states] = np.where(actions < found.about.n_actions, actions, TERMINATE)
    start = found.mdp.start
    assert start is not None
    is_reached = reachable(compute_policy_transitions(aim, greedy), [start])
    return Cloned(
        n_states=len(paths.states),
        accuracy=float((actions == paths.actions).mean()),
        possible_accuracy=_find_possible_accuracy(paths),
        reaches_reward=bool(is_reached[found.mdp.n_listed]),
        value_error=float(np.sqrt(np.square(values - paths.values).mean())),
        least_probability=least_probability,
    )


def _measure_vector_fit(policy: Any, paths: _KnownPaths, found: VectorFound) -> Cloned:
    """Return how well the network fits at observations of steps.

    There is no table to follow it in: that it leads to the reward is taken from the
    accuracy.
    """
    observations = obs_as_tensor(paths.observations, policy.device)
    with torch.no_grad():
        actions = policy.get_distribution(observations).mode().cpu().numpy()
        values = policy.predict_values(observations).cpu().numpy().ravel()
    numbers = [found.controls.read(action)[1] for action in actions]
    known = [found.controls.read(action)[1] for action in paths.actions]
    accuracy = float((np.array(numbers) == np.array(known)).mean())
    return Cloned(
        n_states=len(paths.states),
        accuracy=accuracy,
        possible_accuracy=1.0,
        reaches_reward=True,
        value_error=float(np.sqrt(np.square(values - paths.values).mean())),
        least_probability=1.0,
    )


def _find_possible_accuracy(paths: _KnownPaths) -> float:
    """Return the accuracy of the best policy of observations.

    States that look alike get one action: the most frequent of their actions.
    """
    parts = paths.observations
    if not isinstance(parts, dict):
        parts = {"": parts}
    n_states = len(paths.states)
    columns = [part.reshape(n_states, -1) for part in parts.values()]
    rows = np.concatenate(columns, axis=1)
    _, observation = np.unique(rows, axis=0, return_inverse=True)
    observation = observation.ravel()

    # counts[o, a]: states with observation o from which action a is the way.
    counts = np.zeros((int(observation.max()) + 1, int(paths.actions.max()) + 1))
    np.add.at(counts, (observation, paths.actions), 1)
    return float(counts.max(axis=1).sum() / n_states)


def _warn_of_poor_fit(
    cloned: Cloned, min_accuracy: float, min_probability: float, steps: int
) -> None:
    """Warn of a policy that does not fit: since states look the same, or so far."""
    if cloned.accuracy >= min_accuracy and cloned.reaches_reward:
        if cloned.possible_accuracy == 1 and cloned.least_probability < min_probability:
            logger.warning(
                "clone: on the way from the start a known action has a probability of "
                "%.2f after %d steps, so that training may undo it: give more steps=",
                cloned.least_probability,
                steps,
            )
        return
    if cloned.possible_accuracy < 1 and cloned.accuracy >= (
        min_accuracy * cloned.possible_accuracy
    ):
        logger.warning(
            "clone: states of different actions look the same, so that only %.1f%% of "
            "%d states fit: let the agent see more, such as the full map",
            100 * cloned.accuracy,
            cloned.n_states,
        )
    else:
        logger.warning(
            "clone: the policy fits in %.1f%% of %d states after %d steps: give more "
            "steps=, or a larger network",
            100 * cloned.accuracy,
            cloned.n_states,
            steps,
        )
