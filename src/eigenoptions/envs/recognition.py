"""`StateReader`: how options recognise the present state of an environment.

`from_env` numbers states by a key of each: the observation, or what MiniGrid's grid
holds (`families`). The `MDP` keeps the keys (`states`) and how they are made
(`recognition`), so that `OptionsWrapper` finds the number of the present state while
the agent keeps its own observations.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import gymnasium as gym
from gymnasium.spaces.utils import unflatten
from gymnasium.wrappers import FlattenObservation

from eigenoptions._types import ActsOnObservations
from eigenoptions._validation import check_state
from eigenoptions.envs.families import Key, Recogniser, find_family
from eigenoptions.envs.recognisers import looks_inside, make_recogniser
from eigenoptions.envs.sources import env_name
from eigenoptions.mdp import MDP
from eigenoptions.mdp.recognition import Recognition
from eigenoptions.options import OptionSet

# What the wrappers accept as options. A `LinearOptionSet` is a sequence of options.
Options: TypeAlias = OptionSet | Sequence[ActsOnObservations]

logger = logging.getLogger("eigenoptions")


class StateReader:
    """What options act on in an environment.

    That is the observation, what `state` makes of it, or the number of the state.

    Parameters
    ----------
    options : OptionSet, sequence of options, or MDP
        The options of `OptionsWrapper`, or the MDP whose states are read.
    state : callable, default=None
        The user's function from an observation to the options' input. It comes before
        what the options remember.
    key : str or callable, default=None
        The key that the options were discovered with. A function of the user has to be
        given again where options come from a file; else it may be left out.

    Attributes
    ----------
    mdp : MDP or None
        The MDP of the options, if they have one.
    recognition : Recognition or None
        How the MDP's states are recognised; None where the observation, or what `state`
        makes of it, is the number of the state.
    checks_moves : bool
        Whether `check_move` compares moves with the MDP. The wrappers set it to False
        after the first episode.
    """

    def __init__(
        self,
        options: Options | MDP,
        state: Callable[[Any], Any] | None = None,
        key: str | Key | None = None,
    ) -> None:
        self.state = state
        self.mdp: MDP | None = getattr(options, "mdp", None)
        if isinstance(options, MDP):
            self.mdp = options

        self.recognition: Recognition | None = None
        self._n_states = 0
        if self.mdp is not None:
            self._n_states = self.mdp.n_listed
        if state is None:
            self.recognition = _choose_recognition(self.mdp, key)
        elif key is not None:
            raise ValueError(
                "state= and key= both say what options act on: give one of them"
            )
        self._is_partial = self.recognition is not None and self.recognition.is_partial

        # Moves that were not sampled, or lie outside of a part, may still be possible.
        self.checks_moves = False
        if self.mdp is not None and not self.mdp.is_estimated:
            self.checks_moves = not self._is_partial

        # What was said already, here and by the readers of other environments.
        self._warnings: set[str] = set()
        if self.mdp is not None and self.recognition is not None:
            self._recogniser = self._make_recogniser(self.recognition)
            keys = self.mdp.states or ()
            self._numbers = {key: number for number, key in enumerate(keys)}

    def make_twin(self) -> StateReader:
        """Return a reader for another environment, which follows its own episodes."""
        twin = copy.copy(self)
        if self.recognition is not None:
            twin._recogniser = self._make_recogniser(self.recognition)
        return twin

    def _make_recogniser(self, recognition: Recognition) -> Recogniser:
        # `_choose_recognition` has asked for a key that a file does not hold.
        assert recognition.by is not None
        return make_recogniser(recognition.by)

    @property
    def looks_inside(self) -> bool:
        """Whether a state is recognised by more than its observation."""
        if self.recognition is None or self.recognition.by is None:
            return False
        return looks_inside(self.recognition.by)

    def read(
        self,
        env: gym.Env[Any, Any],
        obs: Any,
        is_first: bool = False,
        action: int | None = None,
    ) -> Any:
        """Return what options act on at an observation.

        Parameters
        ----------
        env : gymnasium.Env
            The environment, in the state that it observes.
        obs : object
            The observation.
        is_first : bool, default=False
            Whether it is the first of an episode. Then the layout is compared with that
            of the options.
        action : int, default=None
            The action that led here, which a pose by dead reckoning needs.

        Returns
        -------
        object
            The options' input. The number of a state is -1 where the options know only
            a part of the environment, and this state is not in it.
        """
        if self.recognition is not None:
            return self._recognise(env, obs, is_first, action, self.recognition)
        value = obs if self.state is None else self.state(obs)
        if self.mdp is None:
            return value
        return check_state(value, self._n_states)

    def _recognise(
        self,
        env: gym.Env[Any, Any],
        obs: Any,
        is_first: bool,
        action: int | None,
        recognition: Recognition,
    ) -> int:
        """Return the number of the present state by its key."""
        layout = recognition.layout
        if is_first and layout is not None:
            present_layout = find_family(env).identify_layout(env.unwrapped)
            if layout != present_layout:
                raise ValueError(
                    f"{env_name(env)} has another layout than that of the options "
                    f"({self.mdp!r}): {self._suggest_remedy()}"
                )

        if is_first or action is None:
            key = self._recogniser.begin(env, obs)
        else:
            key = self._recogniser.follow(env, obs, action)
        number = self._numbers.get(key, -1)
        if number < 0 and recognition.by == "observation":
            number = self._find_flattened(env, obs)
        if number < 0 and not self._is_partial:
            raise ValueError(
                f"{env_name(env)} is in a state that these options do not know "
                f"({self.mdp!r}): {self._suggest_remedy()}"
            )
        if number < 0:
            self._warn_of_unseen_state(env)
        return number

    def _find_flattened(self, env: gym.Env[Any, Any], obs: Any) -> int:
        """Return the number of a state that `FlattenObservation` flattened, or -1."""
        layer = env
        while isinstance(layer, gym.Wrapper):
            if isinstance(layer, FlattenObservation):
                original = unflatten(layer.env.observation_space, obs)
                key = self._recogniser.begin(env, original)
                return self._numbers.get(key, -1)
            if isinstance(layer, gym.ObservationWrapper):
                # It changes what was flattened.
                break
            layer = layer.env
        return -1

    def _warn_of_unseen_state(self, env: gym.Env[Any, Any]) -> None:
        """Say once that options are not available in states that were never seen."""
        if "unseen" in self._warnings:
            return
        self._warnings.add("unseen")
        logger.warning(
            "%s: no option is available in states that were not seen when the options "
            "were discovered (%r); discover them with more steps=, or from what "
            "explore(env, steps) finds",
            env_name(env),
            self.mdp,
        )

    def _suggest_remedy(self) -> str:
        seed = None if self.recognition is None else self.recognition.seed
        if seed is None:
            return "discover options on this environment"
        return (
            f"make every episode that of seed {seed}, "
            f"OptionsWrapper(eo.envs.FixedSeed(env, {seed}), ...), or discover options "
            "on this environment with its wrappers"
        )

    def check_move(self, before: int, after: int, action: int | None = None) -> None:
        """Raise ValueError if a move is impossible in the options' MDP.

        Parameters
        ----------
        before, after : int
            The states of the move.
        action : int, default=None
            The action that was taken. None: a move is possible if some action makes it,
            and any action may fail to move.
        """
        if self.mdp is None or not self.checks_moves:
            return
        if action is None and before == after:
            return

        n_actions = self.mdp.n_actions
        first_row = before * n_actions
        last_row = first_row + n_actions
        if action is not None:
            first_row += action
            last_row = first_row + 1
        table = self.mdp.transition
        successors = table.indices[table.indptr[first_row] : table.indptr[last_row]]
        if (successors >= self.mdp.n_listed).any():
            # At the end of an episode, any state may be observed.
            return

        # Where every action stays put, it may be that none was ever tried.
        was_tried = (successors != before).any()
        if after not in successors and was_tried:
            taken = "a step" if action is None else f"action {action}"
            remedy = "discover options on this environment"
            if self.state is not None:
                remedy = "correct state="
            raise ValueError(
                f"options of another state space: {taken} led from state {before} to "
                f"{after}, which never happens in {self.mdp!r}; {remedy}"
            )


def _choose_recognition(mdp: MDP | None, key: str | Key | None) -> Recognition | None:
    """Return how the states of options are recognised; None: by their numbers.

    Parameters
    ----------
    mdp : MDP or None
        That of the options, if they have one.
    key : str, callable or None
        What the user says, which must be what the options were discovered with.
    """
    recognition = None if mdp is None else mdp.recognition
    # Where an observation is the number of its state, nothing is remembered.
    by = "observation" if recognition is None else recognition.by
    if by is None and not callable(key):
        raise ValueError(
            "these options belong to a key of yours, which their file does not hold: "
            "give the function again, key=..."
        )
    if key is None or key == by:
        return recognition
    if isinstance(by, str):
        raise ValueError(
            f"these options recognise states by {by!r}, not by key={key!r}: leave out "
            "key, or discover options with it, discover(env, key=...)"
        )
    if not callable(key):
        raise ValueError(
            f"these options belong to a key of yours, not to key={key!r}: give that "
            "function, or leave out key"
        )
    assert recognition is not None
    return replace(recognition, by=key)
