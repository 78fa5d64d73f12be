"""Other people's answers: first passage times of deeptime, a spectrum of kooplearn."""

import numpy as np
import pytest
from deeptime.markov.tools.analysis import mfpt
from kooplearn.datasets import compute_prinz_potential_eig, make_prinz_potential
from numpy.testing import assert_allclose

import eigenoptions as eo
from eigenoptions.mdp.chains import uniform_walk
from eigenoptions.samples.features import Fourier


@pytest.mark.parametrize("name", ["four-rooms", "random"])
def test_hitting_times_are_mean_first_passage_times(name, rng):
    if name == "random":
        table = rng.random((12, 3, 12)) ** 4
        mdp = eo.MDP(table / table.sum(axis=2, keepdims=True))
    else:
        mdp = eo.maze(name)
    walk = uniform_walk(mdp).toarray()
    expected = np.stack([mfpt(walk, goal) for goal in range(mdp.n_states)], axis=1)
    assert_allclose(eo.hitting_times(mdp), expected, rtol=1e-8)


def test_spectrum_of_samples_is_that_of_a_particle_in_a_potential():
    """Four wells: slow feature analysis finds what the Langevin equation says.

    Its time scales and eigenfunctions.
    """
    time_step = 1e-3
    lag = 10
    path = make_prinz_potential(
        0.0, n_steps=200_000, dt=time_step, gamma=1.0, sigma=np.sqrt(2), random_state=0
    ).to_numpy()
    obs = path[:-lag:5]
    next_obs = path[lag::5]
    n = len(obs)
    no_action = np.zeros(n, dtype=int)
    never = np.zeros(n, dtype=bool)
    features = Fourier((-1.3,), (1.3,), order=30)
    batch = eo.Transitions(obs, no_action, next_obs, never)
    sp = eo.feature_spectrum(batch, features, 3)

    values, functions = compute_prinz_potential_eig(
        1.0, np.sqrt(2), lag * time_step, eval_right_on=path[:2_000], num_components=4
    )

    # Of functions with variance 1, half of the mean squared change is 1 minus the
    # eigenvalue of the dynamics.
    assert_allclose(1 / np.log(1 - sp.values / n), 1 / np.log(values[1:]), rtol=0.15)
    found = features(path[:2_000]) @ sp.vectors
    for i in range(3):
        assert abs(np.corrcoef(functions[:, i + 1], found[:, i])[0, 1]) > 0.99
