"""What the fuzzer calls: every public name with odd arguments (`CALLS`), and results against slow twins (`RIGHT`)."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import wraps
from itertools import islice
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from scipy.sparse import csc_array, csr_array
from tests import reference

import eigenoptions as eo
from eigenoptions.discovery.hierarchy import second_level, spanned
from eigenoptions.discovery.methods.covering_eigen import rod_cycle
from eigenoptions.experiments.store import Store
from eigenoptions.features import RBF, Bits, Fourier, OneHot, Raw, Tiles
from eigenoptions.mdp import reachable
from eigenoptions.options.solver import lengths, tolerance
from eigenoptions.options.walks import endless
from eigenoptions.spectra.representations import (
    default_representation,
    learned_successor,
    successor_representation,
)

ROOT = Path(__file__).parent.parent
LINE = "S..G"


@dataclass
class Given:
    """What one example holds: a sparse array, mostly invalid; two arguments of any kind; a seed; a folder."""

    bad: csr_array
    a: Any
    b: Any
    seed: int
    folder: Path

    def __post_init__(self) -> None:
        rng = np.random.default_rng(self.seed)
        self.rng = rng
        self.line = eo.maze(LINE)
        self.options = eo.discover(self.line, 2)
        # Numbers of any kind, as the bad array holds them.
        self.values = np.array(self.bad.data.imag if self.bad.data.dtype.kind == "c" else self.bad.data)
        # A right table of random moves in which every state reaches every other, and options that end.
        n, actions = int(rng.integers(2, 7)), int(rng.integers(1, 4))
        moves = rng.integers(n, size=(n, actions))
        moves[:, 0] = (np.arange(n) + 1) % n
        table = csr_array(
            (np.ones(n * actions), moves.ravel(), np.arange(n * actions + 1)), shape=(n * actions, n)
        )
        self.mdp = eo.MDP(table, start=0, goal=n - 1)
        policy = rng.integers(-1, actions, size=(int(rng.integers(1, 4)), n)).astype(np.int32)
        for row in policy:
            while len(lost := endless(self.mdp, row)):
                row[lost[0]] = -1
        self.skills = eo.OptionSet(policy, actions)
        if not (self.folder / "options.safetensors").exists():
            self.options.save(self.folder / "options.safetensors")

    def count(self, most: int = 3) -> Any:
        """The first argument, unless it would take long."""
        return most if isinstance(self.a, int) and self.a > most else self.a


def spectrum_of(x: Given) -> eo.Spectrum:
    return eo.spectrum(eo.graph(x.mdp))


def transitions_of(x: Given) -> eo.Transitions:
    return eo.Transitions(x.values, x.bad.indices, x.values[::-1], np.zeros(len(x.values), bool))


def wrapped(x: Given) -> Any:
    env = eo.OptionsWrapper(eo.envs.MazeEnv(x.line), x.options, gamma=x.a, option_chance=x.b)
    env.reset(seed=0)
    return env.step(env.action_space.sample())


def emulator() -> Any:
    return eo.atari.Emulator("Freeway")


def start() -> Any:
    return eo.atari.Start("Freeway", ((1, 3),), (14,), (0,))


def rows_of(x: Given, **changes: Any) -> eo.LinearOptionSet:
    return eo.LinearOptionSet(**{"direction": [[1.0]], "features": Raw(), "n_actions": 2, **changes})


# By public name, without "eigenoptions."; each call may return, or raise a ValueError or a TypeError.
CALLS: dict[str, list[Callable[[Given], object]]] = {
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
    "spectra.representations.successor_representation": [lambda x: successor_representation(x.bad, x.a)],
    "spectra.representations.learned_successor": [
        lambda x: learned_successor(x.bad.indices, x.bad.indices[::-1], x.count(9), gamma=x.b),
        lambda x: learned_successor([0, 1], [1, 0], 2, alpha=x.a, sweeps=x.count(3)),
    ],
    "spectra.representations.default_representation": [
        lambda x: default_representation(x.bad, x.values, x.a)
    ],
    "from_env": [
        lambda x: eo.from_env(eo.envs.MazeEnv(x.line), max_states=x.a),
        lambda x: eo.from_env(x.a),
        lambda x: eo.from_env("FrozenLake-v1", seed=x.b),
    ],
    "collect": [
        lambda x: eo.collect(x.mdp, x.count(20), rng=x.b),
        lambda x: eo.collect(x.line, 9, policy=x.a, option_chance=x.b),
    ],
    "envs.stream": [lambda x: list(eo.envs.stream(x.line, x.count(20), n_envs=x.count(3)))],
    "envs.MazeEnv": [
        lambda x: eo.envs.MazeEnv(LINE, start=x.a, goal=x.b).reset(seed=0),
        lambda x: eo.envs.MazeEnv(x.a),
    ],
    "envs.MazeVectorEnv": [
        lambda x: eo.envs.MazeVectorEnv(LINE, x.count(4), max_episode_steps=x.b).reset(seed=0)
    ],
    "envs.Numbered": [lambda x: eo.envs.Numbered(gym.make("FrozenLake-v1"), max_states=x.a).reset(seed=0)],
    "envs.StateLimitReached": [lambda x: eo.envs.StateLimitReached("full", x.mdp, 3)],
    "envs.Recording": [lambda x: len(eo.envs.Recording(x.folder, (1, 2)))],
    "envs.load_transitions": [lambda x: eo.envs.load_transitions(x.a)],
    "envs.CollectionStopped": [lambda x: eo.envs.CollectionStopped("full")],
    "envs.OptionsSpace": [
        lambda x: eo.envs.OptionsSpace(x.count(9), x.b if x.b != 10**9 else 9, 0.1).sample()
    ],
    "envs.PrimitiveStep": [lambda x: eo.envs.PrimitiveStep(0, x.a, 0.0, 1, x.b, np.ones(2, np.int8))],
    "OptionsWrapper": [wrapped, lambda x: eo.OptionsWrapper(eo.envs.MazeEnv(x.line), x.a, mode=x.b)],
    "OptionsVectorWrapper": [
        lambda x: eo.OptionsVectorWrapper(
            eo.envs.MazeVectorEnv(x.line, 2), x.options, gamma=x.a, option_chance=x.b
        ),
        lambda x: eo.OptionsVectorWrapper(eo.envs.MazeVectorEnv(x.line, 2), x.a, mode=x.b),
    ],
    "envs.OptionsVectorSpace": [
        lambda x: eo.envs.OptionsVectorSpace(x.count(9), x.count(9), 2, x.b).sample()
    ],
    "run_options": [
        lambda x: eo.run_options(eo.envs.MazeEnv(x.line), x.options, runs=x.count(2), max_steps=9, rng=x.b),
        lambda x: eo.run_options(x.a, x.b),
        lambda x: eo.run_options(eo.envs.MazeEnv(x.line), x.a, warm_up=x.b if x.b != 10**9 else 2),
    ],
    "Gram": [
        lambda x: eo.Gram().add(x.bad, x.bad),
        lambda x: eo.Gram(dedupe=False).add(x.bad, csr_array(np.eye(*x.bad.shape))),
        lambda x: streamed([x.a, 1], [1, x.b]).spectrum(),
        lambda x: eo.Gram(x.a, features=x.b),
    ],
    "gather": [
        lambda x: eo.gather([(x.bad, x.bad)]),
        lambda x: eo.gather(x.a),
        lambda x: eo.gather(csc_array((x.bad.data, x.bad.indices, x.bad.indptr), shape=x.bad.shape[::-1])),
    ],
    "LinearOption": [lambda x: looked_up(rows_of(x), x.a)],
    "LinearOptionSet": [
        lambda x: rows_of(x, direction=x.values[:, None], weights=x.b),
        lambda x: rows_of(x, n_actions=x.a, threshold=x.b),
        lambda x: rows_of(x, patience=x.a, stop_chance=x.b),
    ],
    "cycle": [lambda x: list(islice(eo.cycle(x.mdp, n_options=2, steps=x.count(30), rounds=x.b), 2))],
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
    "features.OneHot": [lambda x: OneHot(x.a)(x.bad.indices)],
    "features.Raw": [lambda x: Raw()(x.values), lambda x: Raw((x.a,), (x.b,))],
    "features.Bits": [lambda x: Bits()(x.bad.indices)],
    "features.Fourier": [
        lambda x: Fourier((x.a,), (x.b,))(x.values[:, None]),
        lambda x: Fourier((0,), (1,), x.a, x.b),
    ],
    "features.Tiles": [lambda x: Tiles((0.0,), (1.0,), x.a, x.b)(x.values[:, None])],
    "features.RBF": [lambda x: RBF((0.0,), (1.0,), grid=x.a, width=x.b)(x.values[:, None])],
    "parallel.using": [lambda x: entered(eo.parallel.using(x.a, x.b))],
    "parallel.pmap": [
        lambda x: eo.parallel.pmap(abs, [x.seed, -1], workers=x.a),
        lambda x: eo.parallel.pmap(x.a, [x.b]),
    ],
    "experiments.store.Store": [lambda x: stored(x)],
}
# Calls that take a tenth of a second and more: made in one of `RARELY` examples.
RARELY = 25
SLOW: dict[str, list[Callable[[Given], object]]] = {
    "deep.learn": [
        lambda x: eo.deep.learn(eo.collect(x.line, 40, rng=0), k=x.count(2), steps=x.count(3), rng=x.b)
    ],
    "deep.LearnedSpectrum": [
        lambda x: eo.deep.learn(eo.collect(x.line, 40, rng=0), k=2, steps=2).certificate
    ],
    "deep.Certificate": [lambda x: eo.deep.learn(transitions_of(x), k=1, steps=1)],
    "deep.Training": [
        lambda x: eo.deep.learn(eo.collect(x.line, 40, rng=0), k=1, steps=2, batch_size=x.a).training
    ],
    "deep.Encoder": [lambda x: eo.deep.learn(eo.collect(x.line, 40, rng=0), k=1, steps=1, encoder=x.a)],
    "deep.Dataset": [lambda x: eo.deep.Dataset.of(x.a), lambda x: eo.deep.Dataset.of(transitions_of(x))],
    "atari.Emulator": [lambda x: eo.atari.Emulator(x.a), lambda x: emulator().replay([x.a])],
    "atari.discover": [
        lambda x: eo.atari.discover(x.a, transitions=x.b),
        lambda x: eo.atari.discover("Freeway", x.a or "x"),
        lambda x: eo.atari.discover(
            "Freeway", [start()], transitions=-1 if isinstance(x.b, int) else x.b or 0
        ),
    ],
    "atari.find_starts": [
        lambda x: eo.atari.find_starts("Freeway", n=x.count(1), bursts=x.b if x.b != 10**9 else 2)
    ],
    "atari.collect": [
        lambda x: eo.atari.collect("Freeway", [start()], n=x.count(3), longest=x.b if x.b != 10**9 else 5)
    ],
    "atari.directions": [lambda x: eo.atari.directions(streamed([0, 1], [1, 0]), x.a, tol=x.b)],
    "atari.atari_options": [
        lambda x: eo.atari.atari_options(x.values[None], "Freeway"),
        lambda x: eo.atari.atari_options(x.a, x.b),
    ],
    "atari.bind": [lambda x: eo.atari.bind(rows_of(x), x.a)],
    "atari.lockstep.lockstep": [lambda x: rolled(x)],
    "atari.Rules": [
        lambda x: eo.atari.Rules(hold=x.a, depth=x.b),
        lambda x: eo.atari.Rules(after=x.a, rng=x.b),
    ],
    "atari.slow_directions": [
        lambda x: eo.atari.slow_directions("Freeway", [start()], hold=x.a, decisions=x.count(3))
    ],
    "atari.chart": [
        lambda x: eo.atari.chart("Freeway", [start()], hold=x.count(4), limit=x.b if x.b != 10**9 else 2)
    ],
    "atari.plan": [lambda x: eo.atari.plan(x.a, x.values)],
    "atari.follow": [lambda x: eo.atari.follow(emulator(), x.a, x.b, x.options)],
    "atari.Game": [lambda x: eo.atari.Game("Freeway", position=(x.a,))],
    "atari.register": [lambda x: eo.atari.register(x.a)],
    "atari.Chart": [lambda x: eo.atari.chart("Freeway", [start()], limit=2, watch=(x.a,))],
    "atari.Ram": [
        lambda x: eo.atari.Ram(addresses=(x.a,), steps=x.b),
        lambda x: eo.atari.Ram()(x.bad.indices[None]),
    ],
    "atari.Rollouts": [lambda x: eo.atari.play(emulator(), emulator().save(), [[0, 1]])],
    "atari.Start": [lambda x: eo.atari.Start(x.a, ((x.b, 1),), (14,), (0,))],
    "atari.active": [lambda x: eo.atari.active(spectrum_of(x))],
    "atari.bits": [lambda x: eo.atari.bits(x.bad.indices), lambda x: eo.atari.bits(x.a)],
    "atari.complete": [lambda x: eo.atari.complete(spectrum_of(x))],
    "atari.game_name": [lambda x: eo.atari.game_name(x.a)],
    "atari.influence": [lambda x: eo.atari.influence(emulator(), [], hold=x.a)],
    "atari.known": [lambda x: eo.atari.known(x.a)],
    "atari.load_starts": [lambda x: eo.atari.load_starts(x.folder / "options.safetensors")],
    "atari.paper_order": [lambda x: eo.atari.paper_order(spectrum_of(x))],
    "atari.play": [lambda x: eo.atari.play(emulator(), emulator().save(), [[x.a, x.b]])],
    "atari.published_starts": [lambda x: eo.atari.published_starts(x.a)],
    "atari.player_bytes": [lambda x: eo.atari.player_bytes(emulator(), rng=x.a) if x.seed % 4 == 0 else None],
    "atari.random_directions": [lambda x: eo.atari.random_directions(x.count(5), inside=x.b)],
    "atari.rank": [lambda x: eo.atari.rank(spectrum_of(x))],
    "atari.save_starts": [lambda x: eo.atari.save_starts(x.folder / "starts.json", [start()])],
    "atari.whereabouts": [lambda x: eo.atari.whereabouts(emulator(), hold=x.count(2))],
}


def looked_up(options: Any, key: Any) -> object:
    """An entry of a sequence: what it does not have is an IndexError or a KeyError, as in Python."""
    try:
        return options[key]
    except LookupError:
        return None


def streamed(before: Any, after: Any) -> eo.Gram:
    gram = eo.Gram()
    gram.add(before, after)
    return gram


def entered(context: Any) -> object:
    with context as value:
        return value


def stored(x: Given) -> object:
    with Store(x.folder / "store") as store:
        return store.pmap(abs, [x.seed], shared={} if x.a else None)


def rolled(x: Given) -> object:
    from eigenoptions.atari.lockstep import lockstep

    ram = eo.atari.Ram("bytes", addresses=(14,))
    game = emulator()
    return lockstep(game, game.save(), [[x.a]], ram, x.count(5), eo.atari.Rules())


# Right answers ------------------------------------------------------------------------------------------------


def close(found: Any, expected: Any, rtol: float = 1e-8) -> None:
    np.testing.assert_allclose(found, expected, rtol=rtol, atol=1e-10)


def sure(check: Callable[[Given], None]) -> Callable[[Given], None]:
    """A wrong result, or an error, on right input is never a refusal."""

    @wraps(check)
    def checked(x: Given) -> None:
        try:
            check(x)
        except (ValueError, TypeError) as error:
            raise AssertionError(f"right input was refused: {error}") from error

    return checked


def right_graph(x: Given) -> None:
    S, A = x.mdp.n_states, x.mdp.n_actions
    moves = x.mdp.transition.toarray().reshape(S, A, S).max(axis=1) > 0
    expected = (moves | moves.T) & ~np.eye(S, dtype=bool)
    np.testing.assert_array_equal(eo.graph(x.mdp).toarray(), expected)
    close(eo.laplacian(eo.graph(x.mdp)).toarray(), reference.dense_laplacian(eo.graph(x.mdp), "normalized"))


def right_spectrum(x: Given) -> None:
    W = eo.graph(x.mdp)
    for operator in ("normalized", "combinatorial"):
        L = reference.dense_laplacian(W, operator)
        found = eo.spectrum(W, operator=operator)
        close(found.values, np.linalg.eigvalsh(L))
        close(L @ found.vectors, found.vectors * found.values)


def right_options(x: Given) -> None:
    f = np.round(x.rng.standard_normal(x.mdp.n_states), 2)
    found = eo.solve(x.mdp, eo.Purpose(f), gamma=0.9)
    expected, value = reference.planned(x.mdp.successors, f, 0.9, tolerance(np.abs(f).max(), 0.0))
    np.testing.assert_array_equal(found.policy[0], expected)
    close(found.value[0], value)
    walks = [reference.walk(x.mdp.successors, expected, s) for s in range(x.mdp.n_states)]
    np.testing.assert_array_equal(lengths(x.mdp, expected), [steps for steps, _ in walks])


def right_times(x: Given) -> None:
    chance = (None, 0.05, 0.5)[x.seed % 3]
    slow = reference.hitting_times(x.mdp, x.skills.policy, chance)
    close(eo.hitting_times(x.mdp, x.skills, option_chance=chance), slow)
    n = x.mdp.n_states
    close(eo.diffusion_time(x.mdp, x.skills, option_chance=chance), slow.sum() / (n * (n - 1)))
    close(eo.diffusion_curve(x.mdp, x.skills, option_chance=chance)[-1], slow.sum() / (n * (n - 1)))


def right_representations(x: Given) -> None:
    n, gamma = x.mdp.n_states, 0.9
    P = x.mdp.transition.toarray().reshape(n, -1, n).mean(axis=1)
    close(successor_representation(csr_array(P), gamma), np.linalg.inv(np.eye(n) - gamma * P))
    before, after = x.rng.integers(n, size=(2, 12))
    psi = np.zeros((n, n))
    for s, t in zip(before, after, strict=True):
        psi[s] += 0.3 * (np.eye(n)[s] + gamma * psi[t] - psi[s])
    close(learned_successor(before, after, n, gamma=gamma, alpha=0.3), psi)


def right_gram(x: Given) -> None:
    before, after = (csr_array(np.round(x.rng.random((6, 3)))) for _ in range(2))
    gram = eo.Gram()
    gram.add(before, after)
    T = reference.incidence(before.toarray().tolist(), after.toarray().tolist())
    T = np.array(T, dtype=float).reshape(-1, 3)
    found = gram.spectrum()
    rebuilt = (found.vectors * (2 * found.values)) @ found.vectors.T
    np.testing.assert_allclose(rebuilt, T.T @ T, atol=1e-8)


def right_files(x: Given) -> None:
    path = x.folder / "right.safetensors"
    x.skills.save(path)
    np.testing.assert_array_equal(eo.load_options(path).policy, x.skills.policy)


def right_learning(x: Given) -> None:
    twice = [eo.q_learning(x.mdp, x.skills, runs=2, episodes=4, max_steps=20, rng=x.seed) for _ in range(2)]
    np.testing.assert_array_equal(twice[0].q, twice[1].q)
    assert set(np.unique(twice[0].returns)) <= {0.0, 1.0}


def right_samples(x: Given) -> None:
    seen = eo.collect(x.mdp, 25, rng=x.seed)
    np.testing.assert_array_equal(x.mdp.successors[seen.obs, seen.action], seen.next_obs)
    exact = eo.from_env(eo.envs.MazeEnv(x.mdp))
    assert reachable(exact.transition, [0]).sum() <= exact.n_states
    np.testing.assert_array_equal(
        OneHot(x.mdp.n_states)(seen.obs).toarray(), np.eye(x.mdp.n_states)[seen.obs]
    )


RIGHT = [
    sure(check)
    for check in (
        right_graph,
        right_spectrum,
        right_options,
        right_times,
        right_representations,
        right_gram,
        right_files,
        right_learning,
        right_samples,
    )
]

# Public names that hold no code of their own.
PLAIN = {"TERMINATE", "spectra.MAX_DENSE_STATES", "spectra.OPERATORS", "spectra.Operator"}
# Repeated names: one object.
ALIASES = {"atari", "deep", "envs", "evaluation", "spectra"}


def public() -> Iterator[str]:
    """Public names: of the package, of the reference page, of the subpackages that list theirs, and feature maps."""
    yield from eo.__all__
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    yield from re.findall(r"auto(?:function|class):: eigenoptions\.([\w.]+)", page)
    for part in sorted(ALIASES):
        for name in getattr(eo, part).__all__:
            yield name if name in eo.__all__ and part != "atari" else f"{part}.{name}"
    for name, value in vars(eo.features).items():
        if inspect.isclass(value) and value.__module__ == "eigenoptions.features" and name[0] != "_":
            yield f"features.{name}"
