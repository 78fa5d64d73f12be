"""Stable-Baselines3 after `explore`, and with options. It needs the extra ``sb3``.

* `fill_replay` and `clone` give an agent what `explore` found: DQN and other off-policy
  agents its steps, PPO and other on-policy agents the ways to the reward.
* `OptionsDQN`, the buffers and `SMDPDiscounts` discount a decision for an option by its
  true duration; `prefer_actions` lets an agent begin with primitive actions.
"""

# `options` comes first: it says what to install where a library is missing.
from eigenoptions.agents.sb3.options import (  # isort: skip
    DecisionSamples,
    OptionsDQN,
    SMDPDiscounts,
    SMDPMaskableRolloutBuffer,
    SMDPReplayBuffer,
    SMDPRolloutBuffer,
    prefer_actions,
)
from eigenoptions.agents.sb3.cloning import Cloned, clone
from eigenoptions.agents.sb3.replay import fill_replay

__all__ = [
    "Cloned",
    "DecisionSamples",
    "OptionsDQN",
    "SMDPDiscounts",
    "SMDPMaskableRolloutBuffer",
    "SMDPReplayBuffer",
    "SMDPRolloutBuffer",
    "clone",
    "fill_replay",
    "prefer_actions",
]
