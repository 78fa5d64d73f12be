"""`Walkers`: the agents of one experience, in which an exception loses nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from eigenoptions.explore.experience import Experience, Walker
from eigenoptions.explore.found import Found
from eigenoptions.explore.vectors import VectorExperience, VectorWalker, take_over

# What is known so far, of states that repeat or of vectors, and an agent in it.
Knowledge = Experience | VectorExperience
AnyWalker = Walker | VectorWalker


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
        self, experience: Knowledge, generators: Sequence[np.random.Generator]
    ) -> None:
        self._generators = generators
        self._is_torn = False
        self._walkers = self._make_walkers(experience)

    def _make_walkers(self, experience: Knowledge) -> list[AnyWalker]:
        return [experience.make_walker(rng) for rng in self._generators]

    def __len__(self) -> int:
        return len(self._generators)

    def __getitem__(self, i: int) -> AnyWalker:
        self._repair()
        return self._walkers[i]

    @property
    def experience(self) -> Knowledge:
        """What they have seen together."""
        return self[0].experience

    @property
    def found(self) -> Found:
        """What was found so far."""
        return self.experience.found

    @contextmanager
    def changing(self) -> Iterator[list[AnyWalker]]:
        """Return the agents to a ``with`` block that moves them or an environment.

        If an exception leaves the block, what was not completed is dropped.
        """
        self._repair()
        self._is_torn = True
        yield self._walkers
        self._is_torn = False

    def turn_to_vectors(
        self, make: Callable[[], VectorExperience], last_obs: Sequence[Any]
    ) -> None:
        """Go on with vectors, since states hardly repeat.

        Parameters
        ----------
        make : callable
            Makes an experience without steps.
        last_obs : sequence
            The last observation of each agent.
        """
        experience = self.experience
        assert isinstance(experience, Experience)
        vectors = make()
        take_over(experience, vectors)
        walkers = []
        for walker, rng, obs in zip(
            self._walkers, self._generators, last_obs, strict=True
        ):
            successor = vectors.make_walker(rng)
            if walker.is_in_episode:
                assert isinstance(walker, Walker)
                successor.go_on(obs, walker.find_last_row())
            walkers.append(successor)
        self._walkers = list(walkers)

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
