"""A method of your own in a few lines
===================================

Choose potentials, and `solve` turns each into an option.

A potential is one number per state; its differences are the reward. With the
decorator ``discovery_method`` and in a file of ``discovery/methods``,
`discover` and the command line know the method by its name (CONTRIBUTING.md).

In the picture: four options that lead to the doors, which are the states whose
removal takes their neighbours farthest apart. To explore with they are worth
less than eigenoptions, as the numbers printed show.
"""

import numpy as np
from scipy.sparse.csgraph import shortest_path

import eigenoptions as eo


def measure_detours(mdp):
    """Mean distance of each state's neighbours if the state is removed."""
    W = eo.graph(mdp).tolil()
    states = np.arange(mdp.n_states)
    detours = np.zeros(mdp.n_states)
    for state in states:
        others = np.delete(states, state)
        rest = W[others][:, others].tocsr()
        distances = shortest_path(rest, unweighted=True)

        # Neighbours have other numbers where a state is missing.
        neighbours = np.searchsorted(others, W.rows[state])
        between = distances[np.ix_(neighbours, neighbours)]
        pairs = np.triu_indices(len(neighbours), 1)
        detours[state] = np.mean(between[pairs])
    return detours


def make_door_purposes(mdp, n):
    """Purposes that lead to the n states with the longest detours."""
    detours = measure_detours(mdp)
    goals = np.argsort(-detours, kind="stable")[:n]
    purposes = []
    for goal in goals:
        potential = np.zeros(mdp.n_states)
        potential[goal] = 1.0
        purposes.append(eo.Purpose(potential, goal=int(goal)))
    return purposes


rooms = eo.maze("four-rooms")
doors = eo.solve(rooms, make_door_purposes(rooms, 4), gamma=0.99)
places = []
for option in doors:
    (end,) = rooms.coords[option.termination].tolist()
    places.append(tuple(end))
print(repr(doors))
print("places:", places)

eigenoptions = eo.discover(rooms, 4)
time = eo.diffusion_time(rooms, doors, option_chance=0.05)
print(f"diffusion time: {time:.0f} steps with these options,")
time = eo.diffusion_time(rooms, eigenoptions, option_chance=0.05)
print(f"{time:.0f} with 4 eigenoptions")

figure = eo.plots.plot_options(doors)
eo.plots.save_figure(figure, "own-method.svg")
