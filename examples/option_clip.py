"""A clip of options at play
=========================

An environment drawn step by step, as a GIF.

In the picture: four options one after the other, each from where the last one
stopped. Orange is the agent, blue the start and green the goal, of which
options know nothing.
"""

import gymnasium as gym
import numpy as np

import eigenoptions as eo

rooms = eo.maze("four-rooms")
options = eo.discover(rooms, n_options=8)
env = gym.make("eigenoptions/FourRooms-v0", render_mode="rgb_array")
state, _ = env.reset(seed=0)
frames = [env.render()]
for label in ("e2+", "e2-", "e3+", "e3-"):
    option = options[label]
    steps = 0
    action = option.act(state)
    while action != eo.TERMINATE:
        state, *_ = env.step(action)
        frames.append(env.render())
        steps += 1
        action = option.act(state)

    # A pause: the last frame stays for a moment.
    frames += [frames[-1]] * 4
    place = tuple(rooms.coords[state].tolist())
    print(f"{label}: {steps} steps to {place}")

# Every second pixel is enough.
small_frames = np.array(frames)[:, ::2, ::2]
eo.plots.save_clip(small_frames, "option-clip.gif")
