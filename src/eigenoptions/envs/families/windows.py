"""What a family of environments says about windows on a grid: how they are read, names.

The names are for people: nothing is learned from them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

# What is known of a cell, or of the hand: one integer per channel, the kind first.
Code: TypeAlias = tuple[int, ...]

# From an observation to its window and to what is in the hand.
View: TypeAlias = Callable[[Any], tuple[Any, Any]]


class Task(NamedTuple):
    """What an episode is about: rewards are learned for each task, effects for all.

    Parameters
    ----------
    name : str, default=""
        Its name, such as the verb of a mission.
    codes : tuple of int, default=None
        The thing that it names, as a cell; -1 where it does not say. What pays is then
        learned for all things: "the one that the mission names".
    """

    name: str = ""
    codes: Code | None = None

    def names_cell(self, cell: Code) -> bool:
        """Whether a cell is the thing that the task names."""
        if self.codes is None:
            return False
        pairs = zip(self.codes, cell, strict=True)
        return all(wanted in (-1, value) for wanted, value in pairs)


@dataclass(frozen=True)
class Names:
    """Words for the numbers of a family, for printed rules.

    Parameters
    ----------
    actions : tuple of str, default=()
        Name of each action.
    channels : tuple of str, default=()
        Name of each channel.
    values : tuple of mapping, default=()
        Of each channel, the names of its numbers.
    """

    actions: tuple[str, ...] = ()
    channels: tuple[str, ...] = ()
    values: tuple[Mapping[int, str], ...] = ()

    def name_action(self, action: int) -> str:
        """Return the name of an action, or its number."""
        if action < len(self.actions):
            return self.actions[action]
        return f"action {action}"

    def name_channel(self, channel: int) -> str:
        """Return the name of a channel, or its number."""
        if channel < len(self.channels):
            return self.channels[channel]
        return "kind" if channel == 0 else f"channel {channel}"

    def name_value(self, channel: int, value: int) -> str:
        """Return the name of a channel's value, or both as numbers."""
        if channel < len(self.values) and value in self.values[channel]:
            return self.values[channel][value]
        return f"{self.name_channel(channel)} {value}"

    def find_code(self, word: str, n_channels: int) -> Code | None:
        """Return the code of a word, -1 in the channels it does not name."""
        for channel, values in enumerate(self.values):
            for value, name in values.items():
                if name == word:
                    code = [-1] * n_channels
                    code[channel] = value
                    return tuple(code)
        return None


@dataclass(frozen=True)
class Surroundings:
    """How observations of a family are windows on a grid.

    Parameters
    ----------
    view : callable
        ``view(obs)`` returns the window and the hand: see `MapWrapper`.
    at : tuple of int
        Row and column of the agent in the window.
    names : Names
        Words for printed rules.
    read_task : callable
        ``read_task(obs)`` returns the `Task`.
    """

    view: View
    at: tuple[int, int]
    names: Names = field(default_factory=Names)
    read_task: Callable[[Any], Task] = lambda obs: Task()
