"""Skills from the memory of an Atari game (paper, Section 5.2): find, save, load, and choose them as actions.

Needs ``pip install 'eigenoptions[atari]'``. The paper collects 25,000 new transitions from six start states; so does
``python examples/atari_options.py 25000``, in half a minute.

In the picture: where the chicken of Freeway is after each of twenty random decisions; an option takes one
or a few frames, an action one.
"""

import sys
import tempfile
from pathlib import Path

# Registers the environments.
import ale_py
import gymnasium as gym
import matplotlib.pyplot as plt
import numpy as np

import eigenoptions as eo
from eigenoptions.atari import atari_options, bind, collect, directions, find_starts, rank

rows = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000
starts = find_starts("Freeway", n=6 if rows > 1_000 else 2, bursts=max(rows // 60, 20))
gram = collect("Freeway", starts, rows, longest=rows)
spectrum = directions(gram, sample=rows)
print(f"{gram}: rank {rank(spectrum)} with ale-py {ale_py.__version__}")
options = atari_options(spectrum, "Freeway")
print(options)

with tempfile.TemporaryDirectory() as folder:
    options.save(Path(folder) / "freeway.safetensors")
    options = eo.load_linear_options(Path(folder) / "freeway.safetensors", only=slice(40))

env = gym.make("ALE/Freeway-v5", obs_type="ram", frameskip=1, repeat_action_probability=0.0)
agent = eo.OptionsWrapper(env, bind(options, env), max_duration=100)
obs, info = agent.reset(seed=0)
rng = np.random.default_rng(0)
heights = [int(obs[14])]
for _ in range(20):
    action = int(rng.choice(np.flatnonzero(info["action_mask"])))
    obs, reward, terminated, truncated, info = agent.step(action)
    name = options.labels[info["option"]] if info["option"] >= 0 else f"action {action}"
    heights.append(int(obs[14]))
    print(f"{name:9} {info['duration']:3} frames, chicken at height {heights[-1]}")
figure, ax = plt.subplots(figsize=(3.5, 2.4), layout="constrained")
ax.plot(heights)
ax.set(xlabel="decision", ylabel="height of the chicken")
eo.plots.save_figure(figure, "atari-options.svg")
