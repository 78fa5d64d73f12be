"""Filming options
===============

What an agent sees of an option is one step; a film shows all of them.

Gymnasium's ``RenderCollection`` keeps a frame of every step. It stands inside
of `OptionsWrapper`, so that it sees the steps of an option, too. So you can
film any environment with ``render_mode="rgb_array"``. ``RecordVideo`` in the
same place writes MP4 files instead (``pip install moviepy``).

In the picture: four options one after the other, each from where the last one
stopped. Orange is the agent, blue the start and green the goal, of which
options know nothing.
"""

import gymnasium as gym
from gymnasium.wrappers import RenderCollection

import eigenoptions as eo

env = gym.make("eigenoptions/FourRooms-v0", render_mode="rgb_array")
options = eo.discover(env, n_options=8)

# With moviepy: env = gym.wrappers.RecordVideo(env, "videos")
filmed = RenderCollection(env)
agent = eo.OptionsWrapper(filmed, options)

agent.reset(seed=0)
for label in ("e2+", "e2-", "e3+", "e3-"):
    number = options.find(label)
    state, *_, info = agent.step(agent.n_primitive + number)
    place = tuple(options.mdp.coords[state].tolist())
    print(f"{label}: {info['duration']} steps to {place}")

frames = filmed.render()
eo.plots.save_clip(frames, "option-clip.gif")
print(f"{len(frames)} frames")
