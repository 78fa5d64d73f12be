"""MiniGrid
========

An environment without a table is explored, and its options are exact
(``pip install minigrid``).

In the picture: the option e2+ on one map per heading of the agent. Straight
arrows are steps forward, bent ones are turns; red cells are where it stops. The
agent walks from room to room, turning at the doors.
"""

import gymnasium as gym

import eigenoptions as eo

# The layout depends on the seed: every episode gets the one of the options.
env = gym.make("minigrid:MiniGrid-FourRooms-v0")
env = eo.envs.FixedSeed(env, 3)
mdp = eo.from_env(env, seed=3)
options = eo.discover(mdp, n_options=4)
print(repr(mdp))
print(f"state 0 is {mdp.states[0]}")

# Choose each option once, from the first state of an episode.
wrapped = eo.OptionsWrapper(env, options)
for i, option in enumerate(options):
    wrapped.reset()
    *_, info = wrapped.step(wrapped.n_primitive + i)
    print(
        f"{option.label} takes {info['duration']} steps; "
        f"its mean length is {option.mean_length:.1f}"
    )

figure = eo.plots.plot_options(options[:1], figsize=(6.5, 7.0))
eo.plots.save_figure(figure, "minigrid-rooms.svg")
