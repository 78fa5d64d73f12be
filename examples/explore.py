"""Without a map
=============

``explore`` walks through an environment of which nothing is known, and always
goes to what it has not tried.

In the picture: after how many steps each cell of four rooms was first seen.
"""

import eigenoptions as eo

env = eo.envs.MazeEnv("four-rooms")
found = eo.explore(env, 1_000, until="reward")
print(found)

# Random actions for the same number of steps see fewer states.
walk = eo.collect(env, found.n_steps, rng=0)
print(f"random actions see {len(set(walk.next_obs.tolist()))} states")

# The way to what was rewarded, and options of the part that is known.
way = found.option()
print(f"the goal is {found.distances[found.mdp.start]:.0f} steps away: {way!r}")
options = eo.discover(found, n_options=4)
print(repr(options))

# Agents as they are: random actions of this environment go to the unknown.
exploring = eo.Exploring(env)
exploring.reset(seed=0)
for _ in range(300):
    *_, terminated, truncated, info = exploring.step(
        exploring.action_space.sample()
    )
    if terminated or truncated:
        exploring.reset()
print(f"300 samples see {len(exploring.found.seen)} states")

eo.plots.save_figure(eo.plots.plot_first_visits(found), "explore.svg")
