"""Skills from the memory of an Atari game (paper, Section 5.2)
============================================================

Find them, and choose them as actions.

Needs ``pip install '.[atari]'`` (in a clone). ``python
examples/atari_options.py 9000`` plays longer before. The paper's own way to
sample is in ``reproduction/atari``.

In the picture: the height of Freeway's chicken after each of twenty random
decisions; an option takes one or a few steps of 8 frames, an action one.
"""

import sys

import gymnasium as gym
import matplotlib.pyplot as plt
import numpy as np

import eigenoptions as eo
from eigenoptions.atari import ram_options, slow_directions

try:
    import ale_py  # noqa: F401 (registers the environments)
except ModuleNotFoundError as missing:
    sys.exit(f"{missing}: the games need pip install '.[atari]', in a clone")

n_decisions = 1_000
if len(sys.argv) > 1:
    n_decisions = int(sys.argv[1])

# The features are the bits of bytes that the player changes for long; their
# slow directions come from random play, each action of which takes 8 frames.
spectrum = slow_directions("Freeway", [()], n_decisions=n_decisions)

env = gym.make(
    "ALE/Freeway-v5",
    obs_type="ram",
    frameskip=8,
    repeat_action_probability=0.0,
)
options = ram_options(spectrum, env, frame_skip=8)
print(options)

# Choose at random among the actions and the first forty options.
agent = eo.OptionsWrapper(env, options[:40], max_duration=100)
rng = np.random.default_rng(0)
obs, info = agent.reset(seed=0)
HEIGHT = 14  # the byte of the memory that holds it
heights = [int(obs[HEIGHT])]
for _ in range(20):
    available = np.flatnonzero(info["action_mask"])
    action = int(rng.choice(available))
    obs, reward, terminated, truncated, info = agent.step(action)
    heights.append(int(obs[HEIGHT]))

    name = f"action {action}"
    if info["option"] >= 0:
        name = options.labels[info["option"]]
    print(
        f"{name:9} {info['duration']:3} steps, chicken at height {heights[-1]}"
    )

figure, ax = plt.subplots()
ax.step(range(len(heights)), heights, where="post")
ax.set(xlabel="decision", ylabel="height of the chicken")
figure.savefig("atari-options.svg")
