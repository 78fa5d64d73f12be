"""Calls of tables, spectra, options, discovery, diffusion times, learning and workers."""

from __future__ import annotations

from itertools import islice

import numpy as np
from reproduction.store import Store
from tests.fuzz_given import Calls, Given, looked_up, spectrum_of, transitions_of

import eigenoptions as eo
from eigenoptions.discovery.frontier import Cells, Explorer
from eigenoptions.discovery.hierarchy import second_level, spanned
from eigenoptions.discovery.methods.covering_eigen import rod_cycle
from eigenoptions.options.walks import walk
from eigenoptions.spectra.representations import (
    default_representation,
    learned_default,
    learned_successor,
    successor_representation,
)

CALLS: Calls = {
    "MDP": [
        lambda x: eo.MDP(x.bad, start=x.a, goal=x.b),
        lambda x: eo.MDP(np.eye(4), coords=x.values, reward=x.b),
    ],
    "Transitions": [transitions_of],
    "maze": [
        lambda x: eo.maze("".join(".#SG\n"[int(i) % 5] for i in x.bad.indices)),
        lambda x: eo.maze(f"rooms:{x.count(2)}x{x.count(2)}", rng=x.b),
    ],
    "mazes": [lambda x: eo.mazes()],
    "graph": [lambda x: eo.graph(x.line, x.bad), lambda x: eo.graph(x.line, x.a)],
    "Spectrum": [lambda x: eo.Spectrum(x.values, np.eye(3), n_zero=x.a), lambda x: eo.Spectrum(x.a, x.b)],
    "laplacian": [lambda x: eo.laplacian(x.bad), lambda x: eo.laplacian(x.a, x.b)],
    "spectrum": [
        lambda x: eo.spectrum(x.bad, x.a if isinstance(x.a, int) else None),
        lambda x: eo.spectrum(x.bad, x.b, solver="sparse"),
        lambda x: eo.spectrum(eo.graph(x.mdp), x.a, rng=x.b),
        lambda x: eo.spectrum(eo.graph(x.mdp), operator="successor", gamma=x.a),
    ],
    "spectra.clusters": [lambda x: eo.spectra.clusters(x.values)],
    "spectra.operators": [lambda x: eo.spectra.operators()],
    "Purpose": [lambda x: eo.Purpose(x.values, accuracy=x.b), lambda x: eo.Purpose(x.a, goal=x.b)],
    "Option": [lambda x: eo.Option(x.values, x.values).act(0), lambda x: eo.Option(x.a, x.b)],
    "OptionSet": [
        lambda x: eo.diffusion_time(x.line, eo.OptionSet(x.bad.indices[None], 2)),
        lambda x: looked_up(x.options, x.a),
        lambda x: eo.OptionSet(x.bad.indices[None], x.a, labels=x.b),
    ],
    "eigenpurposes": [
        lambda x: eo.eigenpurposes(x.a),
        lambda x: eo.eigenpurposes(spectrum_of(x), both_signs=x.b),
    ],
    "solve": [
        lambda x: eo.solve(x.line, eo.Purpose(x.values), gamma=x.a),
        lambda x: eo.solve(x.mdp, x.a, tol=x.b),
    ],
    "load_options": [lambda x: eo.load_options(x.folder / "options.safetensors", only=x.a)],
    "load_linear_options": [lambda x: eo.load_linear_options(x.folder / "options.safetensors", only=x.a)],
    "discover": [
        lambda x: eo.discover(x.line, n_options=x.a, gamma=x.b),
        lambda x: eo.discover(x.mdp, x.count(), eo.methods()[x.seed % len(eo.methods())]),
        lambda x: eo.discover(x.a, method=x.b),
        lambda x: eo.discover(x.line, 2, operator=x.a, rng=x.b),
    ],
    "methods": [lambda x: eo.methods()],
    "discovery.hierarchy.spanned": [lambda x: spanned(x.mdp, x.skills), lambda x: spanned(x.line, x.a)],
    "discovery.hierarchy.second_level": [lambda x: second_level(x.mdp, x.skills, x.a, gamma=x.b)],
    "discovery.methods.covering_eigen.rod_cycle": [
        lambda x: list(islice(rod_cycle(x.mdp, round_steps=x.count(20), gamma=x.b), 2)),
    ],
    "discovery.frontier.Explorer": [
        lambda x: Explorer(x.mdp.n_states, x.mdp.n_actions, gamma=x.a, prior=x.b).walk(x.mdp, x.count(20)),
        lambda x: Explorer(4, 2, rng=x.a)(x.bad.indices),
    ],
    "discovery.frontier.Cells": [
        lambda x: Cells(x.values, x.values + 1.0, x.a)(x.values),
        lambda x: Cells([0.0, 0.0], [1.0, 2.0], cells=x.a)(x.b),
    ],
    "options.walks.walk": [
        lambda x: walk(x.mdp, x.count(20), x.skills, option_chance=x.a),
        lambda x: walk(x.mdp, 5, begin=x.a, max_episode_steps=x.b),
    ],
    "spectra.representations.successor_representation": [lambda x: successor_representation(x.bad, x.a)],
    "spectra.representations.learned_default": [
        lambda x: learned_default(x.bad.indices, x.bad.indices[::-1], x.bad.data, temperature=x.a),
        lambda x: learned_default([0, 1], [1, 0], [x.a, -1.0], alpha=x.b, sweeps=x.count(3)),
    ],
    "spectra.representations.learned_successor": [
        lambda x: learned_successor(x.bad.indices, x.bad.indices[::-1], x.count(9), gamma=x.b),
        lambda x: learned_successor([0, 1], [1, 0], 2, alpha=x.a, sweeps=x.count(3)),
    ],
    "spectra.representations.default_representation": [
        lambda x: default_representation(x.bad, x.values, x.a)
    ],
    "diffusion_time": [lambda x: eo.diffusion_time(x.mdp, x.skills, option_chance=x.a)],
    "diffusion_curve": [
        lambda x: eo.diffusion_curve(x.line, x.a),
        lambda x: eo.diffusion_curve(x.mdp, x.skills),
    ],
    "hitting_times": [lambda x: eo.hitting_times(x.mdp, x.a), lambda x: eo.hitting_times(x.a)],
    "diffusion_estimate": [
        lambda x: eo.diffusion_estimate(x.mdp, walks=x.count(4), max_steps=x.b, rng=0),
        lambda x: eo.diffusion_estimate(x.mdp, x.skills, walks=3, confidence=x.a, rng=x.b),
    ],
    "Estimate": [lambda x: str(eo.Estimate(1.0, 0.5, 1.5, 0.95, 10, 100))],
    "best_option_chance": [
        lambda x: eo.best_option_chance(x.mdp, x.skills),
        lambda x: eo.best_option_chance(x.a, x.b),
    ],
    "BestChance": [lambda x: str(eo.BestChance(0.1, 2.0, 3.0, 4.0))],
    "q_learning": [
        lambda x: eo.q_learning(x.line, x.options, runs=2, episodes=x.count(5), gamma=x.b),
        lambda x: eo.q_learning(x.mdp, x.skills, runs=x.count(2), episodes=2, alpha=x.b, max_steps=9),
    ],
    "smdp_q_learning": [
        lambda x: eo.smdp_q_learning(x.mdp, x.skills, runs=2, episodes=x.count(5), explore=x.b)
    ],
    "intra_option_q_learning": [
        lambda x: eo.intra_option_q_learning(
            x.mdp, x.skills, runs=2, episodes=2, max_steps=x.count(9), epsilon=x.b
        )
    ],
    "LearningRecord": [lambda x: eo.q_learning(x.mdp, runs=2, episodes=2, max_steps=5).settings],
    "experiments.store.Store": [lambda x: stored(x)],
}


def stored(x: Given) -> object:
    with Store(x.folder / "store") as store:
        return store.pmap(abs, [x.seed], shared={} if x.a else None)
