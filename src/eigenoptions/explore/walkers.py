"""`Walkers`: the agents of one experience, in which an exception loses nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager

import numpy as np

from eigenoptions.explore.experience import Experience, Walker
from eigenoptions.explore.found import Found


class Walkers:
    """The agents of one experience, in which an exception loses no complete step.

    An exception may come between any two lines: Ctrl-C does, and so may another one
    while the first is dealt with. So nobody tidies up where it happens. What agents do
    is marked as begun, and unmarked when it is done. Whoever comes next and finds the
    mark builds a new experience of the complete steps beside the old one, which it
    replaces in a single assignment. An exception in between leaves all as it was.

    After it nobody knows where the environments are, so agents wait for a new episode.

    Parameters
    ----------
    experience : Experience
        What they have seen together.
    generators : sequence of numpy.random.Generator
        One for each agent, which decides between equal actions.
    """

    def __init__(
        self, experience: Experience, generators: Sequence[np.random.Generator]
    ) -> None:
        self._generators = generators
        self._is_torn = False
        self._walkers = self._make_walkers(experience)

    def _make_walkers(self, experience: Experience) -> list[Walker]:
        return [Walker(experience, generator) for generator in self._generators]

    def __len__(self) -> int:
        return len(self._generators)

    def __getitem__(self, i: int) -> Walker:
        self._repair()
        return self._walkers[i]

    @property
    def experience(self) -> Experience:
        """What they have seen together."""
        return self[0].experience

    @property
    def found(self) -> Found:
        """What was found so far."""
        return self.experience.found

    @contextmanager
    def changing(self) -> Iterator[list[Walker]]:
        """Return the agents to a ``with`` block that moves them or an environment.

        If an exception leaves the block, what was not completed is dropped.
        """
        self._repair()
        self._is_torn = True
        yield self._walkers
        self._is_torn = False

    def leave(self) -> None:
        """Leave all episodes, as if their last steps had been truncated."""
        with self.changing() as walkers:
            for walker in walkers:
                walker.leave()

    def _repair(self) -> None:
        """Return to the complete steps, if a change was not."""
        if not self._is_torn:
            return
        for walker in self._walkers:
            walker.leave()
        experience = self._walkers[0].experience.rebuild()
        self._walkers = self._make_walkers(experience)
        self._is_torn = False
