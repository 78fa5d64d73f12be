"""Calls of Atari games and of trained features, which take a tenth of a second and more."""

from __future__ import annotations

from typing import Any

from tests.fuzz_given import Calls, Given, rows_of, spectrum_of, streamed, transitions_of

import eigenoptions as eo


def emulator() -> Any:
    return eo.atari.Emulator("Freeway")


def start() -> Any:
    return eo.atari.Start("Freeway", ((1, 3),), (14,), (0,))


SLOW: Calls = {
    "deep.learn": [
        lambda x: eo.deep.learn(eo.collect(x.line, 40, rng=0), k=x.count(2), steps=x.count(3), rng=x.b)
    ],
    "deep.heads": [lambda x: eo.deep.heads(eo.collect(x.line, 40, rng=0), [], x.a, steps=x.count(3))],
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
        lambda x: eo.atari.find_starts("Freeway", n=x.count(1), bursts=2**70 if x.b == 2**70 else x.few(2))
    ],
    "atari.collect": [lambda x: eo.atari.collect("Freeway", [start()], n=x.count(3), longest=x.few(5))],
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
    "atari.chart": [lambda x: eo.atari.chart("Freeway", [start()], hold=x.count(4), limit=x.few(2))],
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


def rolled(x: Given) -> object:
    from eigenoptions.atari.lockstep import lockstep

    ram = eo.atari.Ram("bytes", addresses=(14,))
    game = emulator()
    return lockstep(game, game.save(), [[x.a]], ram, x.count(5), eo.atari.Rules())
