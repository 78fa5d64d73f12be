"""Stable-Baselines3 after `explore`, and with options. It needs the extra ``sb3``.

* `fill_replay` and `clone` give an agent what `explore` found: DQN and other off-policy
  agents its steps, PPO and other on-policy agents the ways to the reward.
* `OptionsDQN`, the buffers and `SMDPDiscounts` discount a decision for an option by its
  true duration; `check_discounts` says whether an agent does. `prefer_actions` lets an
  agent begin with primitive actions.
* `PrimitiveSteps` lets ``learn(n)`` count primitive steps, and `OptionUsage` logs how
  often which option is chosen.
"""

# `buffers` comes first: it says what to install where a library is missing.
from eigenoptions.agents.sb3.buffers import (  # isort: skip
    DecisionSamples,
    SMDPMaskableRolloutBuffer,
    SMDPReplayBuffer,
    SMDPRolloutBuffer,
)
from eigenoptions.agents.sb3.callbacks import (
    OptionUsage,
    PrimitiveSteps,
    SMDPDiscounts,
)
from eigenoptions.agents.sb3.cloning import Cloned, clone
from eigenoptions.agents.sb3.discounts import check_discounts
from eigenoptions.agents.sb3.options import OptionsDQN, prefer_actions
from eigenoptions.agents.sb3.replay import fill_replay

__all__ = [
    "Cloned",
    "DecisionSamples",
    "OptionUsage",
    "OptionsDQN",
    "PrimitiveSteps",
    "SMDPDiscounts",
    "SMDPMaskableRolloutBuffer",
    "SMDPReplayBuffer",
    "SMDPRolloutBuffer",
    "check_discounts",
    "clone",
    "fill_replay",
    "prefer_actions",
]
