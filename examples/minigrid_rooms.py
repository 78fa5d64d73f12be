"""MiniGrid
========

An environment without a table is explored, and its options are exact (``pip install minigrid``).

In the picture: the option e2+ on one map per heading of the agent. Arrows are steps forward, digits turns (0 left, 1
right); red cells are where it stops. The agent walks from room to room, turning at the doors.
"""

import eigenoptions as eo

# Observes the number of the state.
env = eo.envs.Numbered("minigrid:MiniGrid-FourRooms-v0", seed=3)
print(repr(env.mdp))
options = eo.discover(env.mdp, n_options=4)
wrapped = eo.OptionsWrapper(env, options)
state, info = wrapped.reset(seed=0)
for i, option in enumerate(options):
    env.reset(seed=0)
    *_, info = wrapped.step(wrapped.n_primitive + i)
    print(f"{option.label} takes {info['duration']} steps; its mean length is {option.mean_length:.1f}")
eo.plots.save_figure(eo.plots.plot_options(options[:1], width=6.5), "minigrid-rooms.svg")
