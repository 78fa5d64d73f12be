"""Values of options in large deterministic tables; `options.solver` has the same for small ones in NumPy."""

from __future__ import annotations

from eigenoptions._kernels import compile_kernel


@compile_kernel
def raise_arrival_values(successors, potentials, gamma, arrival):  # type: ignore[no-untyped-def]
    """Raise `arrival` (S, m) to the least fixed point of ``x = (1 - gamma) e + gamma max(e, max_a x(next))``.

    States are visited in their order and backwards, in turns, until nothing rises; `successors` (S, A) are the next
    states, `potentials` (S, m) the values e at which `arrival` begins.
    """
    n_states, n_actions = successors.shape
    n_potentials = potentials.shape[1]
    rising, forward = True, True
    while rising:
        rising = False
        for i in range(n_states):
            s = i if forward else n_states - 1 - i
            for j in range(n_potentials):
                best = potentials[s, j]
                for a in range(n_actions):
                    best = max(best, arrival[successors[s, a], j])
                new = (1.0 - gamma) * potentials[s, j] + gamma * best
                if new > arrival[s, j]:
                    arrival[s, j] = new
                    rising = True
        forward = not forward
