"""What is known of the layout of this episode: a table of poses, and the way on."""

from __future__ import annotations

import logging
from collections.abc import Hashable
from functools import cached_property
from typing import Any, Protocol

import numpy as np

from eigenoptions._types import IndexArray
from eigenoptions.envs.families import Key
from eigenoptions.envs.shaping import KeyPotential
from eigenoptions.explore.layouts.maps import LayoutMap
from eigenoptions.explore.layouts.motions import Pose, move
from eigenoptions.explore.layouts.planning import Plan
from eigenoptions.explore.layouts.rules import PAYS
from eigenoptions.explore.layouts.skills import Step
from eigenoptions.mdp import MDP
from eigenoptions.mdp.recognition import Recognition

logger = logging.getLogger("eigenoptions")

# Discount of the potential.
_DISCOUNT = 0.99


_LEGEND = "one map per heading of the agent (right, down, left, up)"


class LayoutFound:
    """The part of this episode's layout that is known: ``env.found`` of `MapWrapper`.

    It is a picture of the present moment; the next one is ``env.found`` again.
    ``discover(found)`` finds options of it, which end with the episode.

    Parameters
    ----------
    layout : LayoutMap
        The map so far.
    name : str
        That of the environment.
    episode : int
        Number of the episode, which is part of each state: poses of two layouts have
        nothing in common.
    key : callable
        ``key(env, obs)`` returns the present state of the wrapper.
    way : WayOn
        What `option` returns.
    source : PlanSource
        The wrapper.
    """

    def __init__(
        self,
        layout: LayoutMap,
        name: str,
        episode: int,
        key: Key,
        way: WayOn,
        source: PlanSource,
    ) -> None:
        # The map goes on: this is the part that is known now.
        self._layout = layout.copy()
        self._name = name
        self._episode = episode
        self.key = key
        self._way = way
        self._source = source

    @property
    def mdp(self) -> MDP:
        """The table of poses within reach."""
        return self._table[0]

    @property
    def rewarded(self) -> IndexArray:
        """The states from which a step pays by the rules."""
        return self._table[1]

    @cached_property
    def _table(self) -> tuple[MDP, IndexArray]:
        return self._make_table()

    def _make_table(self) -> tuple[MDP, IndexArray]:
        """Return the table of poses, and those from which a step pays by the rules."""
        layout = self._layout
        rules = layout.rules
        motions = rules.motions.motions
        numbers = {layout.pose: 0}
        poses = [layout.pose]
        rows = []
        rewarded = []
        # The list grows while it is read.
        for pose in poses:
            row = []
            for action, motion in enumerate(motions):
                after = pose
                scene = layout.look_at(pose, rules.find_offset(action))
                if motion.turns:
                    after = move(pose, motion)
                elif scene is not None:
                    effect = rules.predict(action, scene)
                    if effect is not None and effect.moved:
                        after = move(pose, motion)
                    if rules.predict_end(layout.task, action, scene) == PAYS:
                        rewarded.append(numbers[pose])
                if after not in numbers:
                    numbers[after] = len(numbers)
                    poses.append(after)
                row.append(numbers[after])
            rows.append(row)

        coords, headings = _place_poses(poses, rules.motions.turns)
        mdp = MDP.from_successors(
            np.array(rows),
            coords=coords,
            headings=headings,
            legend=_LEGEND if rules.motions.turns else "",
            start=0,
            name=self._name,
            states=[(self._episode, *pose) for pose in poses],
            recognition=Recognition(self.key, is_partial=True),
            is_estimated=True,
        )
        return mdp, np.unique(np.array(rewarded, dtype=np.intp))

    def option(self) -> WayOn:
        """Return the way to what pays by the rules, else to the unknown.

        It acts in this and all further layouts of the wrapper: give it to
        `OptionsWrapper`, or follow it with ``option.act(obs)``.
        """
        return self._way

    def potential(self) -> LayoutPotential:
        """Return how near a reward is by the rules, for `ShapedReward`.

        It is 0.99 to the number of steps to what pays, where walking leads there on
        the map so far, and 0 elsewhere. It goes on with the map, in this layout and in
        all further ones. A potential may change with time: optimal policies stay
        optimal (Devlin and Kudenko, 2012).
        """
        return LayoutPotential(self.key, self._source)

    def __repr__(self) -> str:
        cells = len(self._layout.cells)
        return (
            f"LayoutFound({self._name}: {cells:,} cells seen, {self.mdp.n_states:,} "
            f"poses within reach, {len(self.rewarded)} of them before a reward)"
        )


class LayoutPotential(KeyPotential):
    """How near a reward is, on the map of the wrapper."""

    def __init__(self, key: Key, source: PlanSource) -> None:
        self._key = key
        self._source = source

    @property
    def by(self) -> str | Key:
        """How states are recognised."""
        return self._key

    def evaluate(self, key: Hashable) -> float:
        """Return the potential of the present state; that of others is not known: 0."""
        if key != self._key(None, None):
            return 0.0
        n_steps = self._source.count_steps_to_reward()
        return 0.0 if n_steps is None else _DISCOUNT**n_steps


class PlanSource(Protocol):
    """What the way on asks of `MapWrapper`."""

    def find_plan(self) -> Plan:
        """Return a plan from here."""

    def read_progress(self) -> tuple[Pose | None, object]:
        """Return the pose, and what changes with all that is seen and learned."""

    def draw_action(self) -> int:
        """Return a random action."""

    def count_steps_to_reward(self) -> int | None:
        """Return the steps of the shortest walk to what pays; None: no way is known."""


class WayOn:
    """The way to what pays by the rules; else to the unknown, or to what is untried.

    It plans anew when something new is seen. ``gave_up`` counts searches that ended at
    their bound.
    """

    label = "to what pays, else to the unknown"

    def __init__(self, source: PlanSource, name: str) -> None:
        self._source = source
        self._name = name
        self._steps: list[Step] = []
        self._expected: Pose | None = None
        self._seen: object = None
        self._is_costly = False
        self.gave_up = 0

    def act(self, obs: Any) -> int:
        """Return the next action."""
        pose, seen = self._source.read_progress()
        # A search that gave up takes long: its steps are taken before the next one.
        is_news = seen != self._seen and not self._is_costly
        if is_news or pose != self._expected:
            self._steps = []
        if not self._steps:
            self._steps = self._plan()
        step = self._steps.pop(0)
        self._seen = seen
        self._expected = step.pose
        return step.action

    def _plan(self) -> list[Step]:
        plan = self._source.find_plan()
        self._is_costly = plan.gave_up
        if plan.gave_up:
            self._count_giving_up()
        if plan.steps:
            return plan.steps
        # Nothing is left to go to: something may have moved meanwhile.
        return [Step(self._source.draw_action(), Pose(0, 0, 0))]

    def _count_giving_up(self) -> None:
        self.gave_up += 1
        if self.gave_up == 1:
            logger.warning(
                "%s: a plan was given up at its bound, and the best target so far is "
                "taken; option.gave_up counts how often",
                self._name,
            )


def _place_poses(
    poses: list[Pose], turns: bool
) -> tuple[IndexArray, IndexArray | None]:
    """Return where a picture shows poses, one map per heading, and their headings."""
    rows, columns, headings = np.array(poses, dtype=np.intp).T
    rows = rows - rows.min()
    columns = columns - columns.min()
    if not turns:
        return np.stack([rows, columns], axis=1), None
    # MDP.headings count from the right; poses from ahead, which a picture has above.
    headings = (headings + 3) % 4
    rows = rows + (rows.max() + 2) * (headings // 2)
    columns = columns + (columns.max() + 2) * (headings % 2)
    return np.stack([rows, columns], axis=1), headings
