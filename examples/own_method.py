"""A method of your own in a few lines
===================================

Choose potentials, and `solve` turns each into an option.

A potential is one number per state; its differences are the reward. With the decorator ``discovery_method`` and in a
file of ``discovery/methods``, `discover` and the command line know the method by its name (CONTRIBUTING.md).

In the picture: four options that lead to the doors, which are the states whose removal takes their neighbours farthest
apart. To explore with they are worth less than eigenoptions, as the numbers printed show.
"""

import numpy as np
from scipy.sparse.csgraph import shortest_path

import eigenoptions as eo


def doors(mdp, n):
    """Purposes that lead to the n states whose removal makes the detour around them longest."""
    W = eo.graph(mdp).tolil()
    detour = np.zeros(mdp.n_states)
    for state in range(mdp.n_states):
        around = W.rows[state]
        rest = np.delete(np.arange(mdp.n_states), state)
        without = shortest_path(W[rest][:, rest].tocsr(), unweighted=True)
        at = np.searchsorted(rest, around)
        detour[state] = np.mean(without[np.ix_(at, at)][np.triu_indices(len(at), 1)])
    goals = np.argsort(-detour, kind="stable")[:n]
    return [eo.Purpose(np.eye(mdp.n_states)[goal], goal=int(goal)) for goal in goals]


rooms = eo.maze("four-rooms")
options = eo.solve(rooms, doors(rooms, 4), gamma=0.99)
print(repr(options))
print("places:", [tuple(rooms.coords[o.termination][0].tolist()) for o in options])
print(
    f"diffusion time: {eo.diffusion_time(rooms, options, option_chance=0.05):.0f} steps with these options,"
)
print(
    f"{eo.diffusion_time(rooms, eo.discover(rooms, 4), option_chance=0.05):.0f} with 4 eigenoptions"
)
eo.plots.save_figure(eo.plots.plot_options(options), "own-method.svg")
