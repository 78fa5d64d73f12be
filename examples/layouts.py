"""Skills in layouts never seen
============================

``pip install '.[sb3]' minigrid`` (in a clone).

Every episode has a new layout. What actions do is learned once, each rule that
changes something becomes a skill, and MaskablePPO chooses among the skills.

In the picture: the part of the last layout that is known, and an eigenoption.
"""

import gymnasium as gym
import matplotlib.pyplot as plt
import torch
from sb3_contrib import MaskablePPO

import eigenoptions as eo
from eigenoptions.agents.sb3 import SMDPDiscounts, SMDPMaskableRolloutBuffer

torch.set_num_threads(1)
window = eo.MapWrapper(gym.make("minigrid:MiniGrid-DoorKey-6x6-v0"))
env = eo.OptionsWrapper(window, window.skills(32), primitives=False)
env.reset(seed=0)
env.action_space.seed(0)
n_steps = eo.draw_until_won(env, wins=5)
print(f"Five episodes were won after {n_steps} steps of random choice.")

agent = MaskablePPO(
    "MlpPolicy",
    env,
    n_steps=64,
    rollout_buffer_class=SMDPMaskableRolloutBuffer,
    seed=0,
)
agent.learn(256, callback=SMDPDiscounts())
print(window.rules)

figure, ax = plt.subplots(figsize=(4, 4), layout="constrained")
options = eo.discover(window.found, n_options=2)
eo.plots.draw_policy(ax, options.mdp.coords, options[0].policy)
eo.plots.save_figure(figure, "layouts.svg")
