"""Codings of memory and rewards over them: closed forms, files, and the compiled loop against its twin."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from eigenoptions.atari.lockstep import Potentials, on_a_grid
from eigenoptions.atari.ram import Ram
from eigenoptions.features import Bits, recalled, record
from tests.reference import gains

CODINGS = [
    Ram(),
    Ram("bytes"),
    Ram("onehot", addresses=(3, 5, 90)),
    Ram("onehot", steps=7, addresses=(3, 5)),
    Ram("thermometer", steps=16),
    Ram("thermometer", addresses=(0, 127), columns=(5, 100, 254, 255, 300, 380, 509)),
]


@pytest.fixture
def ram(rng: np.random.Generator) -> np.ndarray:
    return rng.integers(0, 256, size=(20, 128), dtype=np.uint8)


@pytest.mark.parametrize("coding", CODINGS, ids=str)
def test_codings_are_records_of_their_width(coding: Ram, ram: np.ndarray) -> None:
    phi = coding(ram)
    assert phi.shape == (20, coding.width)
    assert phi.dtype == (np.float64 if coding.code == "bytes" else np.bool_)
    assert recalled(json.loads(json.dumps(record(coding)))) == coding
    assert coding.label.startswith(coding.code)
    assert coding(ram[:0]).shape == (0, coding.width)


def test_the_codes_are_their_closed_forms(ram: np.ndarray) -> None:
    assert (Ram()(ram) == Bits()(ram)).all()
    assert (Ram("bytes")(ram) * 256 == ram).all()
    one = Ram("onehot")(ram).reshape(20, 128, 256)
    assert (one.sum(axis=2) == 1).all()
    assert (one.argmax(axis=2) == ram).all()
    unary = Ram("thermometer")(ram).reshape(20, 128, 255)
    assert (unary.sum(axis=2) == ram).all()
    assert not (np.diff(unary.astype(int), axis=2) > 0).any()
    assert (Ram("thermometer", steps=16)(ram).reshape(20, 128, 15).sum(axis=2) == ram // 16).all()
    assert (Ram("onehot", steps=2)(ram).reshape(20, 128, 2)[:, :, 1] == (ram >= 128)).all()


def test_left_out_bytes_and_columns_are_those_of_the_whole(ram: np.ndarray) -> None:
    whole = Ram("thermometer", steps=8)(ram).reshape(20, 128, 7)
    part = Ram("thermometer", steps=8, addresses=(4, 14))
    assert (part(ram) == whole[:, [4, 14]].reshape(20, 14)).all()
    assert (Ram("thermometer", steps=8, addresses=(4, 14), columns=(2, 9))(ram) == part(ram)[:, [2, 9]]).all()


@pytest.mark.parametrize("coding", CODINGS, ids=str)
def test_rewards_are_those_of_the_twin_to_the_last_bit(
    coding: Ram, ram: np.ndarray, rng: np.random.Generator
) -> None:
    e = rng.normal(size=(5, coding.width))
    potentials = Potentials(e, coding)
    here, there = ram[:3], np.repeat(ram[:3, None], 4, axis=1)
    there[:, 1, ::7] += 1
    there[:, 2:, 3:100:9] = rng.integers(0, 256, size=there[:, 2:, 3:100:9].shape)
    # Nothing moves.
    there[1] = here[1]
    purposes = np.array([4, 0, 2, 1, 3])
    found = potentials.gains(here, there, purposes, [0, 2, 3, 5])
    for k, i in enumerate([0, 0, 1, 2, 2]):
        assert found[k].tolist() == gains(potentials.direction[purposes[k]], coding, here[i], there[i])
    assert (found[2] == 0).all()


def test_the_grid_is_finer_than_the_noise_and_sums_are_exact(rng: np.random.Generator) -> None:
    e = np.linalg.qr(rng.normal(size=(1024, 1024)))[0][:20]
    rounded = on_a_grid(e, Ram())
    assert np.abs(rounded - e).max() < 1e-14
    assert (on_a_grid(rounded, Ram()) == rounded).all()
    assert (on_a_grid(-e, Ram()) == -rounded).all()
    assert (on_a_grid(0 * e, Ram()) == 0).all()
    # The step is the 2^52nd part of the power of two above the sum.
    step = np.exp2(np.floor(np.log2(np.abs(e).sum(axis=1))) + 1 - 52)
    assert (rounded % step[:, None] == 0).all()
    phi = rng.random((50, 1024)) < 0.5
    order = rng.permutation(1024)
    sums = phi @ rounded.T
    np.testing.assert_array_equal(sums, phi[:, order] @ rounded[:, order].T)
    np.testing.assert_array_equal(sums[0], [sum(row[phi[0]].tolist()) for row in rounded])


def test_bad_input_is_refused(ram: np.ndarray) -> None:
    bad: list[tuple[Any, str]] = [
        (lambda: Ram("gray"), "code must be one of bits, bytes, onehot, thermometer, got 'gray'"),
        (lambda: Ram("onehot", steps=1), "steps must be a whole number in 2..256, got 1"),
        (lambda: Ram("bits", steps=16), "steps are for onehot and thermometer, not for bits"),
        (lambda: Ram(addresses=(3, 3)), "addresses must be different numbers in 0..127, ascending"),
        (lambda: Ram(addresses=(128,)), r"addresses must be .* got \(128,\)"),
        (lambda: Ram(addresses=()), "addresses must be"),
        (lambda: Ram(addresses=(1,), columns=(8,)), r"columns must be different numbers in 0..7"),
        (lambda: Ram(n_bytes=0), "n_bytes must be a whole number from 1"),
        (lambda: Ram()(ram.astype(int)), "memory must be bytes"),
        (lambda: Ram()(ram[:, :5]), r"shape \(N, 128\), got uint8 of shape \(20, 5\)"),
        (lambda: Potentials(np.ones((2, 3)), Ram()), r"shape \(n, 1024\), as wide as the coding"),
    ]
    for call, complaint in bad:
        with pytest.raises(ValueError, match=complaint):
            call()


def test_labels_of_codings_name_the_steps_unless_they_are_all() -> None:
    assert [Ram().label, Ram("onehot").label, Ram("onehot", steps=7).label] == ["bits", "onehot", "onehot-7"]
