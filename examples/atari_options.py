"""Skills from the memory of an Atari game (paper, Section 5.2)
============================================================

Find them, and choose them as actions.

Needs ``pip install '.[atari]'`` (in a clone). The paper collects 25,000 new
transitions; so does ``python examples/atari_options.py 25000``, in half a
minute.

In the picture: the height of Freeway's chicken after each of twenty random
decisions; an option takes one or a few frames, an action one.
"""

import sys

import gymnasium as gym
import matplotlib.pyplot as plt
import numpy as np

import eigenoptions as eo
from eigenoptions.atari import (
    Ram,
    collect_ram,
    published_starts,
    ram_options,
)
from eigenoptions.samples.incidence import feature_spectrum

try:
    import ale_py  # noqa: F401 (registers the environments)
except ModuleNotFoundError as missing:
    sys.exit(f"{missing}: the games need pip install '.[atari]', in a clone")

n_transitions = 1_000
if len(sys.argv) > 1:
    n_transitions = int(sys.argv[1])

# The features are the bits of the memory; their eigenvectors come from samples.
transitions = collect_ram(
    "Freeway",
    published_starts("Freeway"),
    n_transitions,
    max_episode_frames=n_transitions,
)
spectrum = feature_spectrum(transitions, Ram(), whiten=False)

env = gym.make(
    "ALE/Freeway-v5",
    obs_type="ram",
    frameskip=1,
    repeat_action_probability=0.0,
)
options = ram_options(spectrum, env)
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
        f"{name:9} {info['duration']:3} frames, chicken at height {heights[-1]}"
    )

figure, ax = plt.subplots()
ax.step(range(len(heights)), heights, where="post")
ax.set(xlabel="decision", ylabel="height of the chicken")
figure.savefig("atari-options.svg")
