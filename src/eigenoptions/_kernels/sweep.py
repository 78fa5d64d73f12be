"""Values of options in large deterministic tables, by sweeps over the states.

`options.solver` has the same for small tables, in NumPy.
"""

from __future__ import annotations

from eigenoptions._kernels.compilation import compile_kernel
from eigenoptions._types import FloatArray, IntegerArray


@compile_kernel
def raise_arrival_values(
    successors: IntegerArray,
    potentials: FloatArray,
    gamma: float,
    arrival: FloatArray,
) -> None:
    """Raise the values of arriving in a state to those of the best way on from there.

    The result is the least fixed point of
    ``x(s) = (1 - gamma) e(s) + gamma max(e(s), max_a x(successor of s by a))``.

    Parameters
    ----------
    successors : (S, A) array
        Next state of each action in each state.
    potentials : (S, m) array
        Potentials e, one column per purpose.
    gamma : float
        Discount.
    arrival : (S, m) array
        Values x, which are raised in place. They begin at the potentials.
    """
    n_states, n_actions = successors.shape
    n_potentials = potentials.shape[1]

    # States are visited in their order and backwards, in turns: values travel far in
    # one sweep, whichever way they have to go.
    is_rising = True
    is_forward = True
    while is_rising:
        is_rising = False
        for i in range(n_states):
            s = i if is_forward else n_states - 1 - i
            for j in range(n_potentials):
                best = potentials[s, j]
                for a in range(n_actions):
                    best = max(best, arrival[successors[s, a], j])
                value = (1.0 - gamma) * potentials[s, j] + gamma * best
                if value > arrival[s, j]:
                    arrival[s, j] = value
                    is_rising = True
        is_forward = not is_forward
