"""How random decisions should use options of samples: tuned on a table of places."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from eigenoptions._types import IndexArray
from eigenoptions.mdp import MDP
from eigenoptions.options import TERMINATE, OptionSet
from eigenoptions.options.tuning import Exploration, tune_for_all
from eigenoptions.samples.features.states import StateModel
from eigenoptions.samples.linear import LinearOptionSet
from eigenoptions.samples.transitions import Transitions

# Length of the walks by which settings are compared. A table of cells or clusters is a
# rough picture of the space: whether its very last states are seen means little.
_HORIZON = 2_000

# Number of walks per setting.
_N_WALKS = 128


def tune_on_cells(options: OptionSet, visits: IndexArray) -> Exploration:
    """How random decisions should use options of a table of cells or clusters.

    Parameters
    ----------
    options : OptionSet
        Options of the table.
    visits : ndarray of int of shape (S,)
        How many steps of the log began in each state. Where it spent nearly all of its
        time, such as in the first of two rooms, options are of no use. So states that
        it hardly knows count for more.
    """
    return tune_for_all(options.mdp, options, visits, _HORIZON, _N_WALKS)


# Potentials that place observations on a map.
_N_FUNCTIONS = 3

# With more places, hardly any of them is visited twice.
_MAX_PLACES = 5_000


def tune_on_places(
    options: LinearOptionSet, numbered: Transitions
) -> Exploration | None:
    """How random decisions should use options where observations are no vectors.

    The potentials of the first options place observations on a map. Those at one place
    are a state of a table.

    Parameters
    ----------
    options : LinearOptionSet
        The options, which act on numbers of observations. Both signs of a potential
        follow each other.
    numbered : Transitions
        Transitions between numbered observations.

    Returns
    -------
    Exploration or None
        None where there are too many places.
    """
    n_observations = 1 + int(max(numbered.obs.max(), numbered.next_obs.max()))
    potentials = options.potential(np.arange(n_observations))
    places = potentials[: 2 * _N_FUNCTIONS : 2].T.round(9)
    distinct, rows, states = np.unique(
        places, axis=0, return_index=True, return_inverse=True
    )
    n_places = len(distinct)
    if n_places > _MAX_PLACES:
        return None

    # NumPy 2.0 returns a column here.
    states = states.reshape(-1)
    log = (
        states[numbered.obs],
        numbered.action,
        states[numbered.next_obs],
        numbered.terminated,
    )
    mdp = MDP.from_transitions(log, n_places, options.n_actions)
    visits = np.bincount(log[0], minlength=n_places)
    return _tune_actions(mdp, visits, options.actions(rows))


def tune_at_examples(model: StateModel, options: LinearOptionSet) -> Exploration:
    """The setting for options that do in each state what they do at its example.

    Parameters
    ----------
    model : StateModel
        The table.
    options : LinearOptionSet
        Options that act on observations like the examples.
    """
    return _tune_actions(model.mdp, model.visits, options.actions(model.examples))


def _tune_actions(
    mdp: MDP, visits: IndexArray, actions: NDArray[np.int64]
) -> Exploration:
    """The setting for options that take some actions ``(n, S)`` in a table."""
    policy = np.full((len(actions), mdp.n_states), TERMINATE)
    policy[:, : mdp.n_listed] = actions
    return tune_on_cells(OptionSet(mdp, policy), visits)
