"""`Rules`: what actions do, learned in some layouts and used in all.

An action acts on the cell in front of the agent, or on the one it steps to, and on the
hand. What follows is counted per context (`Counts`), without a reward; which steps pay
and which end an episode is counted per task. Rules outlive episodes and layouts.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple

from eigenoptions._text import count_noun
from eigenoptions.envs.families.windows import Code, Names, Task
from eigenoptions.explore.layouts.changes import MOVED, Change, apply_change
from eigenoptions.explore.layouts.counts import (
    Context,
    Counts,
    Parts,
    Prediction,
    contradicts,
    join_features,
)
from eigenoptions.explore.layouts.manual import describe_changes, list_rules
from eigenoptions.explore.layouts.motions import Motions, Pose, rotate
from eigenoptions.explore.layouts.storage import (
    pack_changes,
    pack_counts,
    pack_motions,
    pack_text,
    unpack_changes,
    unpack_counts,
    unpack_motions,
    unpack_text,
)
from eigenoptions.options.files import read_arrays, write_arrays

logger = logging.getLogger("eigenoptions")

# What ended the episode is tried again after so many episodes for each time that it
# did: what pays may have ended episodes first, as where the order of events counts.
_RETRY_DEADLY = 2

# That a cell is in front now, whatever the action was, counts like an action.
ARRIVE = -1

# What an episode did at a step, counted per task.
PAYS = Change("pays")
ENDS = Change("ends")
GOES_ON = Change("goes on")


class Scene(NamedTuple):
    """What an action acts on.

    Parameters
    ----------
    cell : tuple of int
        The code of the cell.
    hand : tuple of int
        What the agent holds.
    beyond : tuple of int, default=None
        The code of the cell behind, where it is seen.
    """

    cell: Code
    hand: Code
    beyond: Code | None = None


class Effect(NamedTuple):
    """What an action is expected to do.

    Parameters
    ----------
    moved : bool
        Whether the agent makes its motion.
    cell, hand, beyond
        What they become; `beyond` is None where it is not looked at.
    """

    moved: bool
    cell: Code
    hand: Code
    beyond: Code | None = None


class Outlook(NamedTuple):
    """All that is expected of an action in a scene.

    Parameters
    ----------
    effect : Effect or None
        What it does; None where nothing is known.
    end : Change
        `PAYS`, `ENDS` or `GOES_ON`.
    is_open : bool
        Whether it was never tried, or is due to be tried again.
    """

    effect: Effect | None
    end: Change
    is_open: bool


class Event(NamedTuple):
    """A rule that changes something, which is what a skill brings about.

    Parameters
    ----------
    action : int
        The action.
    kind : int
        The kind of cell that it is done to.
    changes : tuple of (Change or None)
        What happens to the agent, the cell and the hand; (`ENDS`,) where the episode
        ends.
    is_named : bool
        Whether the cell is the thing that the task names.
    """

    action: int
    kind: int
    changes: tuple[Change | None, ...]
    is_named: bool = False


@dataclass
class Share:
    """How often something was not as expected, of about the last `span` times."""

    span: int
    limit: float
    share: float = 0.0
    n: int = 0
    was_told: bool = False

    def add(self, is_surprise: bool) -> None:
        """Count one more."""
        self.n += 1
        self.share += (is_surprise - self.share) / min(self.n, self.span)

    @property
    def is_high(self) -> bool:
        """Whether this was counted often enough to be told."""
        return self.n >= self.span and self.share > self.limit


class Unexplained(NamedTuple):
    """Shares of what the rules do not explain, of what was seen last.

    Parameters
    ----------
    effects : float
        Of the effects that the rules predicted, those that came otherwise.
    changes : float
        Of the steps, those in which a cell changed that the agent did not act on.
    ends : float
        Of the steps that paid or ended the episode, or were predicted to, those that
        came otherwise.
    """

    effects: float
    changes: float
    ends: float


class Rules:
    """What actions do, counted over layouts.

    ``print(rules)`` reads like a manual. `MapWrapper` makes them and keeps them up to
    date; ``MapWrapper(env, rules=rules)`` shares them.

    Parameters
    ----------
    n_actions : int
        Number of actions.
    reach : int, default=1
        How far an effect reaches: 1, the cell that is acted on; 2, the one behind, too,
        such as where a crate is pushed to.
    names : Names, default=None
        Words for printed rules; None: numbers.

    Attributes
    ----------
    motions : Motions
        Which actions turn the agent or move it.
    effects : Counts
        What followed each action in each context.
    tasks : dict
        The same of rewards and ends, per task.
    events : dict
        The events met so far, and their numbers.
    episode : int
        Number of episodes begun.

    Examples
    --------
    >>> rules = Rules(n_actions=2)
    >>> scene = Scene(cell=(7,), hand=(0,))
    >>> parts = [[Change("stayed")], [Change("same")], [Change("add", (1,))]]
    >>> rules.learn_effect(1, scene, parts)
    >>> rules.predict(1, scene)
    Effect(moved=False, cell=(7,), hand=(1,), beyond=None)
    >>> print(rules)
    Rules: 1 context in 0 episodes
    action 1, kind 7: hand kind grows by 1 (1 of 1)
    Not explained: effects 0.0%, changes 0.0%, ends 0.0%
    """

    def __init__(
        self, n_actions: int, reach: int = 1, names: Names | None = None
    ) -> None:
        self.n_actions = n_actions
        self.reach = reach
        self.names = Names() if names is None else names
        self.motions = Motions(n_actions)
        self.effects = Counts()
        self.tasks: defaultdict[str, Counts] = defaultdict(Counts)
        self.events: dict[Event, int] = {}
        self.episode = 0
        self.version = 0
        # Values of each channel of cells and of the hand, in the order they were met.
        self.codes: list[list[int]] = []
        self.surprises = {
            "effects": Share(span=500, limit=0.05),
            "changes": Share(span=500, limit=0.05),
            "ends": Share(span=50, limit=0.2),
        }

    # Where an action acts.

    def find_offset(self, action: int) -> tuple[int, int]:
        """Return the place that an action acts on, in the agent's frame.

        It is where the action steps to; otherwise the cell in front of an agent that
        turns, after the turn, and the own cell of one that does not.
        """
        motion = self.motions.motions[action]
        if motion.step == (0, 0) and self.motions.turns:
            return rotate((-1, 0), motion.turns)
        return motion.step

    def find_targets(
        self, pose: Pose, offset: tuple[int, int]
    ) -> tuple[tuple[int, int], tuple[int, int]]:
        """Return the place at an offset on the map, and the one behind it."""
        row, column = rotate(offset, pose.heading)
        here = pose.row + row, pose.column + column
        beyond = pose.row + 2 * row, pose.column + 2 * column
        return here, beyond

    def list_offsets(self) -> dict[tuple[int, int], list[int]]:
        """Return the places that actions act on, and the actions; turns act on none."""
        offsets: dict[tuple[int, int], list[int]] = {}
        for action, motion in enumerate(self.motions.motions):
            if not motion.turns:
                offsets.setdefault(self.find_offset(action), []).append(action)
        return offsets

    # What follows.

    def make_context(self, scene: Scene) -> Context:
        """Return the features that an action may depend on."""
        things = [scene.cell, scene.hand]
        if self.reach > 1:
            things.append(scene.beyond or (-1,) * len(scene.cell))
        # Equal kinds say little: doors are no keys.
        pairs = zip(scene.cell[1:], scene.hand[1:], strict=False)
        flags = tuple(int(cell == held) for cell, held in pairs)
        return join_features(things, flags)

    def learn_effect(self, action: int, scene: Scene, parts: Parts) -> None:
        """Count what an action did.

        Parameters
        ----------
        action : int
            The action.
        scene : Scene
            What it acted on.
        parts : list of list of Change
            The descriptions that fit what the agent did, the cell, the hand, and, with
            ``reach=2``, the cell behind.
        """
        context = self.make_context(scene)
        prediction = self.effects.predict(action, context)
        if not prediction.is_untried:
            is_surprise = contradicts(prediction, parts)
            self.surprises["effects"].add(is_surprise)
        if self.effects.count(action, context, parts, self.episode):
            self.version += 1

    def learn_end(
        self, task: Task, action: int, scene: Scene, reward: float, ended: bool
    ) -> None:
        """Count whether a step paid or ended the episode."""
        happened = GOES_ON
        if reward > 0:
            happened = PAYS
        elif ended:
            happened = ENDS

        expected = self.predict_end(task, action, scene)
        if happened != GOES_ON or expected != GOES_ON:
            self.surprises["ends"].add(happened != expected)

        counts = self.tasks[task.name]
        causes = self._list_causes(task, action, scene)
        if happened != GOES_ON and expected == happened:
            # What was done to the cell explains it: not what is in front after.
            direct = counts.predict(*causes[0]).changes
            if direct == (happened,):
                causes = causes[:1]
        for event, context in causes:
            is_known = (event, context.kind) in counts.tallies
            # That most steps go on is counted only where some did not.
            if happened == GOES_ON and not is_known:
                continue
            if counts.count(event, context, [[happened]], self.episode):
                self.version += 1

    def predict_end(self, task: Task, action: int, scene: Scene) -> Change:
        """Return `PAYS`, `ENDS` or `GOES_ON`."""
        counts = self.tasks.get(task.name)
        if counts is None:
            return GOES_ON
        for event, context in self._list_causes(task, action, scene):
            prediction = counts.predict(event, context)
            if prediction.changes is None or prediction.changes[0] is None:
                continue
            change = prediction.changes[0]
            # A reward is expected only of what is much like what paid; death sooner.
            if change == ENDS or (change == PAYS and not prediction.is_untried):
                return change
        return GOES_ON

    def _list_causes(
        self, task: Task, action: int, scene: Scene
    ) -> list[tuple[int, Context]]:
        """Return what may pay: what is done to a cell, and what is in front after."""
        context = self._make_end_context(task, scene.cell, scene.hand)
        motion = self.motions.motions[action]
        if motion.turns:
            # The scene is what it turns to.
            return [(ARRIVE, context)]
        causes = [(action, context)]
        steps = motion.step != (0, 0)
        if self.motions.turns and steps and scene.beyond is not None:
            after = self._make_end_context(task, scene.beyond, scene.hand)
            causes.append((ARRIVE, after))
        return causes

    def predict_arrival(self, task: Task, scene: Scene) -> Change:
        """Return what comes of having a cell in front: `PAYS`, `ENDS` or `GOES_ON`."""
        counts = self.tasks.get(task.name)
        if counts is None or not self.motions.turns:
            return GOES_ON
        context = self._make_end_context(task, scene.cell, scene.hand)
        prediction = counts.predict(ARRIVE, context)
        if prediction.changes is None or prediction.is_untried:
            return GOES_ON
        return prediction.changes[0] or GOES_ON

    def _make_end_context(self, task: Task, cell: Code, hand: Code) -> Context:
        """Return what a reward may depend on: also whether the task names the cell."""
        pairs = zip(cell[1:], hand[1:], strict=False)
        flags = tuple(int(channel == held) for channel, held in pairs)
        flags += (int(task.names_cell(cell)),)
        return join_features([cell, hand], flags)

    def is_untried(self, task: Task, action: int, scene: Scene) -> bool:
        """Whether neither an effect nor an end is known of anything like it.

        The step that ends an episode shows no effect.
        """
        if not self.foresee(action, scene).is_untried:
            return False
        counts = self.tasks.get(task.name)
        if counts is None:
            return True
        causes = self._list_causes(task, action, scene)
        return all(counts.predict(*cause).is_untried for cause in causes)

    def foresee(self, action: int, scene: Scene) -> Prediction:
        """Return the rule of an action in a scene, and how sure it is."""
        return self.effects.predict(action, self.make_context(scene))

    def predict(self, action: int, scene: Scene) -> Effect | None:
        """Return what an action is expected to do; None where nothing is known."""
        changes = self.foresee(action, scene).changes
        if changes is None:
            return None
        cell = apply_change(changes[1], scene.cell, scene.hand)
        hand = apply_change(changes[2], scene.hand, scene.cell)
        beyond = scene.beyond
        if self.reach > 1 and beyond is not None:
            beyond = apply_change(changes[3], beyond, scene.cell)
        return Effect(changes[0] == MOVED, cell, hand, beyond)

    def foresee_all(self, task: Task, action: int, scene: Scene) -> Outlook:
        """Return all that is expected of an action in a scene."""
        end = self.predict_end(task, action, scene)
        is_open = self.is_untried(task, action, scene)
        if end == ENDS and self.is_due(task, action, scene):
            is_open = True
        return Outlook(self.predict(action, scene), end, is_open)

    def is_deadly(self, task: Task, action: int, scene: Scene) -> bool:
        """Whether an action always ended the episode here, and is not due again."""
        if self.predict_end(task, action, scene) != ENDS:
            return False
        tallies = [
            self.tasks[task.name].find_tally(event, context)
            for event, context in self._list_causes(task, action, scene)
        ]
        tried = [tally for tally in tallies if tally is not None]
        has_paid = any(tally.parts[0][PAYS] for tally in tried)
        is_due = any(tally.is_due(self.episode, _RETRY_DEADLY) for tally in tried)
        return not has_paid and not is_due

    def is_due(self, task: Task, action: int, scene: Scene) -> bool:
        """Whether it is time to try again what was believed to be of no use."""
        tallies = [self.effects.find_tally(action, self.make_context(scene))]
        if task.name in self.tasks:
            ends = self.tasks[task.name]
            tallies += [
                ends.find_tally(event, context)
                for event, context in self._list_causes(task, action, scene)
            ]
        tried = [tally for tally in tallies if tally is not None]
        return bool(tried) and all(tally.is_due(self.episode) for tally in tried)

    def forget(self) -> None:
        """Forget effects and ends: a motion was another than thought."""
        self.effects = Counts()
        self.tasks.clear()
        self.version += 1

    # Events and what cannot be explained.

    def number_event(self, event: Event) -> int:
        """Return the number of an event, which it gets when it is first met."""
        return self.events.setdefault(event, len(self.events))

    def name_event(self, number: int) -> str:
        """Return what the event with a number does, in words; empty: not met yet."""
        if not 0 <= number < len(self.events):
            return ""
        event = list(self.events)[number]
        what = describe_changes(event.changes, self.names)
        action = "arrive at"
        if event.action != ARRIVE:
            action = self.names.name_action(event.action)
        kind = self.names.name_value(0, event.kind)
        which = "the named " if event.is_named else ""
        return f"{action}, {which}{kind}: {what}"

    def find_floor(self) -> int:
        """Return the kind of cell that was entered most often; -1: none yet."""
        entered: dict[int, int] = {}
        for (_, kind), tallies in self.effects.tallies.items():
            n_entered = sum(tally.parts[0][MOVED] for tally in tallies.values())
            entered[kind] = entered.get(kind, 0) + n_entered
        if not any(entered.values()):
            return -1
        return max(entered, key=lambda kind: entered[kind])

    @property
    def unexplained(self) -> Unexplained:
        """Shares of what the rules do not explain."""
        shares = {name: round(s.share, 3) for name, s in self.surprises.items()}
        return Unexplained(**shares)

    def warn(self, name: str) -> None:
        """Say once for each measure that the rules do not explain what happens."""
        reasons = {
            "effects": "effects came otherwise than before in the same context: what "
            "happens is random, or depends on something that the window does not show",
            "changes": "steps changed cells that the agent did not act on: things move "
            "by themselves, and the map is soon out of date",
            "ends": "rewards and ends came otherwise than predicted: they depend on "
            "the order of events, or on something out of sight",
        }
        for measure, surprise in self.surprises.items():
            if surprise.is_high and not surprise.was_told:
                surprise.was_told = True
                logger.warning(
                    "%s: %.0f%% of the last %d %s; skills may mislead an agent here "
                    "(env.rules.unexplained)",
                    name,
                    100 * surprise.share,
                    surprise.span,
                    reasons[measure],
                )

    # Text and files.

    def __str__(self) -> str:
        n_contexts = sum(map(len, self.effects.tallies.values()))
        lines = [
            f"Rules: {count_noun(n_contexts, 'context')} in "
            f"{count_noun(self.episode, 'episode')}"
        ]
        lines += list_rules(self.effects, self.names)
        for name, counts in self.tasks.items():
            lines.append(f"Task: {name or 'no name'}")
            lines += list_rules(counts, self.names)
        shares = ", ".join(
            f"{name} {s:.1%}" for name, s in self.unexplained._asdict().items()
        )
        return "\n".join([*lines, f"Not explained: {shares}"])

    def __repr__(self) -> str:
        n_contexts = sum(map(len, self.effects.tallies.values()))
        return f"Rules({n_contexts} contexts, {len(self.events)} events)"

    def save(self, path: str | Path) -> None:
        """Write a safetensors file, completely or not at all; `load_rules` reads it.

        Examples
        --------
        >>> import tempfile
        >>> with tempfile.TemporaryDirectory() as folder:
        ...     Rules(n_actions=3).save(f"{folder}/rules.safetensors")
        ...     load_rules(f"{folder}/rules.safetensors")
        Rules(0 contexts, 0 events)
        """
        header = {
            "n_actions": self.n_actions,
            "reach": self.reach,
            "episode": self.episode,
        }
        names = self.names
        words = [names.actions, names.channels, [[*v.items()] for v in names.values]]
        events = [
            [event.action, event.kind, pack_changes(event.changes), event.is_named]
            for event in self.events
        ]
        tasks = {name: pack_counts(counts) for name, counts in self.tasks.items()}
        arrays = {
            "names": pack_text(words),
            "motions": pack_text(pack_motions(self.motions)),
            "effects": pack_text(pack_counts(self.effects)),
            "tasks": pack_text(tasks),
            "events": pack_text(events),
            "codes": pack_text(self.codes),
        }
        write_arrays(path, "rules", header, arrays)


def load_rules(path: str | Path) -> Rules:
    """Read a file that `Rules.save` wrote.

    Parameters
    ----------
    path : str or pathlib.Path
        Name of the file.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     Rules(n_actions=3).save(f"{folder}/rules.safetensors")
    ...     load_rules(f"{folder}/rules.safetensors").n_actions
    3
    """
    header, arrays = read_arrays(path)
    if header["kind"] != "rules":
        raise ValueError(f"{path} holds {header['kind']}, not rules")
    values = {name: unpack_text(array) for name, array in arrays.items()}
    actions, channels, words = values["names"]
    names = Names(tuple(actions), tuple(channels), tuple(map(dict, words)))

    rules = Rules(header["n_actions"], header["reach"], names)
    rules.episode = header["episode"]
    rules.motions = unpack_motions(values["motions"])
    rules.effects = unpack_counts(values["effects"])
    rules.codes = values["codes"]
    for name, counts in values["tasks"].items():
        rules.tasks[name] = unpack_counts(counts)
    for action, kind, changes, is_named in values["events"]:
        rules.number_event(Event(action, kind, unpack_changes(changes), is_named))
    return rules
