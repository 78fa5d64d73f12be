"""Calls of maps by rule, feature maps, samples and options in feature spaces."""

from __future__ import annotations

from itertools import islice

import gymnasium as gym
import numpy as np
from scipy.sparse import csc_array, csr_array
from tests.fuzz_given import Calls, looked_up, rows_of, streamed

import eigenoptions as eo
from eigenoptions import features
from eigenoptions.features import RBF, Bits, Fourier, OneHot, Raw, Tiles
from eigenoptions.mdp import maps

BOX = gym.spaces.Box(-1.0, 1.0, (1,), np.float64)

CALLS: Calls = {
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
    "features.OneHot": [lambda x: OneHot(x.a)(x.bad.indices)],
    "features.Raw": [lambda x: Raw()(x.values), lambda x: Raw((x.a,), (x.b,))],
    "features.Bits": [lambda x: Bits()(x.bad.indices)],
    "features.Fourier": [
        lambda x: Fourier((x.a,), (x.b,))(x.values[:, None]),
        lambda x: Fourier((0,), (1,), x.a, x.b),
    ],
    "features.Tiles": [lambda x: Tiles((0.0,), (1.0,), x.a, x.b)(x.values[:, None])],
    "features.RBF": [lambda x: RBF((0.0,), (1.0,), grid=x.a, width=x.b)(x.values[:, None])],
    "features.map_class": [lambda x: features.map_class(x.a)],
    "features.settings_of": [lambda x: features.settings_of(x.a), lambda x: features.settings_of("fourier")],
    "features.named": [
        lambda x: features.named(x.a, x.b),
        lambda x: features.named("fourier", BOX, order=x.count(3), coupled=x.b),
        lambda x: features.named("tiles", None, x.values[:, None], tiles=x.a),
        lambda x: features.named("one-hot", x.a, x.bad.indices),
        lambda x: features.named("raw", BOX, **{"nonsense": x.a}),
    ],
    "features.register": [lambda x: features.register(x.a)],
    "features.bounds": [
        lambda x: features.bounds(x.a, x.b),
        lambda x: features.bounds(None, x.values[:, None]),
        lambda x: features.bounds(BOX),
    ],
    "features.record": [lambda x: features.record(x.a), lambda x: features.record(Bits())],
    "features.recalled": [
        lambda x: features.recalled(x.a, x.b),
        lambda x: features.recalled({"map": x.a, "low": x.b}),
        lambda x: features.recalled({"map": "fourier", "low": [x.a], "high": [1.0], "order": x.b}),
    ],
    "features.rows_of": [
        lambda x: features.rows_of(lambda obs: x.bad, [x.a] * x.bad.shape[0], x.b),
        lambda x: features.rows_of(x.a, x.b),
    ],
    "features.flattened": [lambda x: features.flattened(x.a), lambda x: features.flattened(x.values[None])],
    "mdp.maps.open_map": [lambda x: maps.open_map(x.count(9), x.few(9))],
    "mdp.maps.rooms_map": [
        lambda x: maps.rooms_map(x.count(2), x.count(2), 2, rng=x.b),
        lambda x: maps.rooms_map(1, 2, x.count(3), centred=x.b),
    ],
    "mdp.maps.perfect_map": [lambda x: maps.perfect_map(x.count(4), x.count(4), rng=x.b)],
    "mdp.maps.Rule": [lambda x: maps.Rule(x.a, x.b)],
    "mdp.maps.by_rule": [
        lambda x: maps.by_rule(f"open:{x.count(4)}x{x.few(4)}"),
        lambda x: maps.by_rule("perfect:2x2", x.a),
        lambda x: maps.by_rule(x.a),
    ],
    "mdp.maps.of_file": [
        lambda x: maps.of_file(x.a, ["i-maze"]),
        lambda x: maps.of_file(x.folder, ["i-maze"]),
    ],
}
