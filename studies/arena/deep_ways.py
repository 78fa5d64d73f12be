"""Ways to train deep agents: what surrounds them, and what they know in advance."""

from __future__ import annotations

from dataclasses import dataclass, field

TORCH_DQN = "PyTorch DQN"
SB3_DQN = "SB3 DQN"
SB3_PPO = "SB3 PPO"
NO_AGENT = "no agent"


@dataclass(frozen=True)
class Way:
    """A way to train an agent.

    Attributes
    ----------
    about : str
        What it is, in a few words.
    bonus : dict
        Size of a count bonus for each agent that has one.
    is_exploring : bool
        Whether the agent's random actions go to the unknown (`Exploring`).
    explores_first : bool
        Whether `explore` comes first, until the first reward.
    options : str
        ``"eigen"`` or ``"random"`` options of what was found, ``"known"`` ones of the
        table that is known in advance, the way to the reward (``"rewarded"``), or none
        (``""``).
    is_shaped : bool
        Whether rewards are shaped by the distance to what was rewarded.
    is_cloned : bool
        Whether policy and values are fitted to the known ways first.
    is_trained : bool
        Whether the agent learns. If not, it stays as it was cloned.
    is_own_search : bool
        Whether there is neither library nor agent, but breadth-first search.
    is_numbered : bool
        Whether the agent sees the number of its state instead of a view.
    """

    about: str
    bonus: dict[str, float] = field(default_factory=dict)
    is_exploring: bool = False
    explores_first: bool = False
    options: str = ""
    is_shaped: bool = False
    is_cloned: bool = False
    is_trained: bool = True
    is_own_search: bool = False
    is_numbered: bool = False

    @property
    def knows(self) -> str:
        """What the agent knows in advance."""
        return "the table" if self.options == "known" else "nothing"


WAYS = {
    "plain": Way("the agent alone"),
    "counts": Way(
        "a bonus / sqrt(n) for entering a state for the n-th time",
        bonus={TORCH_DQN: 0.01, SB3_DQN: 0.01, SB3_PPO: 0.01},
    ),
    "Exploring": Way("random actions go to the unknown", is_exploring=True),
    "explore": Way(
        "explore until the first reward; these steps fill the replay",
        explores_first=True,
    ),
    "explore, eigenoptions": Way(
        "the same, then eigenoptions of what was found",
        explores_first=True,
        options="eigen",
    ),
    "explore, random options": Way(
        "the same, then options to random known states",
        explores_first=True,
        options="random",
    ),
    "explore, way": Way(
        "the same, then the way to the reward as an option",
        explores_first=True,
        options="rewarded",
    ),
    "explore, shaping": Way(
        "explore, then shaping by the distance to the reward",
        explores_first=True,
        is_shaped=True,
    ),
    "explore, cloning": Way(
        "explore, then clone the known ways",
        explores_first=True,
        is_cloned=True,
    ),
    "explore, cloning only": Way(
        "the same without learning afterwards",
        explores_first=True,
        is_cloned=True,
        is_trained=False,
    ),
    "known options": Way("eigenoptions of the known table", options="known"),
    "followed": Way(
        "explore, then follow `found.option()`",
        explores_first=True,
        options="rewarded",
    ),
    "own search, followed": Way(
        "breadth-first search to the nearest untried action, then the known way",
        is_own_search=True,
    ),
}

# Where the agent's view is not the state: the number of the state instead.
NUMBERED_WAYS = {
    "plain, numbers": Way("the agent alone", is_numbered=True),
    "explore, numbers": Way(
        "explore until the first reward; these steps fill the replay",
        explores_first=True,
        is_numbered=True,
    ),
}
