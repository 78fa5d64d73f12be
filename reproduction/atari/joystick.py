"""The memory after each action, where not every action need be emulated.

An option looks one frame ahead, so that each state costs one emulation per action: 18
in Montezuma's Revenge. Most of these lead to the same memory, because the game does not
read the whole joystick. The rules here name such actions. They were found in 17,257
states of Montezuma's Revenge and 5,078 of Ms. Pac-Man, without an exception.

The rules cannot change a result unseen. One state in `CHECK_EVERY` is tried with all
actions, and an action that is taken is always emulated (see `rollouts.Node`); where a
rule is wrong, both raise.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence

import numpy as np

from eigenoptions.atari.emulator import Bytes

# One state in so many is tried with all actions; its memory decides which.
CHECK_EVERY = 64

# The memory after an action, by emulating it.
Try = Callable[[int], Bytes]

# The joystick is kept in this byte; a pressed direction is a 0.
_OVERWRITTEN_BYTES = {"MontezumaRevenge": 0x66, "Freeway": 0x04}
_DIRECTION_BITS = {"UP": 0x10, "DOWN": 0x20, "LEFT": 0x40, "RIGHT": 0x80}

# The player's pose in Montezuma's Revenge, and those in which the button is not read.
_POSE_BYTE = 0x35
_POSES_WITHOUT_FIRE = (0, 6, 10)

# Ms. Pac-Man reads the joystick only in frames in which this bit is set.
_READING_BYTE = 0x1E
_READING_BIT = 0x01


def look_at_memory(
    game: str, actions: Sequence[str], ram: Bytes, try_action: Try
) -> Bytes:
    """The memory after each action from one state, a frame later.

    Parameters
    ----------
    game : str
        Name of the game.
    actions : sequence of str
        Names of its actions.
    ram : array, shape (128,)
        The memory now.
    try_action : callable
        Emulates an action from this state.

    Returns
    -------
    array, shape (A, 128)
    """
    if game == "MontezumaRevenge":
        rams = _look_in_montezuma(actions, ram, try_action)
    elif game == "MsPacman" and not ram[_READING_BYTE] & _READING_BIT:
        rams = np.repeat(try_action(0)[None], len(actions), axis=0)
    else:
        return _try_all(actions, try_action)

    if zlib.crc32(ram.tobytes()) % CHECK_EVERY == 0:
        check_memory(game, rams, _try_all(actions, try_action))
    return rams


def forget_joystick(game: str, ram: Bytes) -> bytes:
    """The memory without the byte that a game overwrites before it reads it.

    States of one frame that are equal but for this byte lead to the same memory. In
    Montezuma's Revenge a third of the states are such twins.
    """
    if game in _OVERWRITTEN_BYTES:
        ram = np.delete(ram, _OVERWRITTEN_BYTES[game])
    return ram.tobytes()


def check_memory(game: str, expected: Bytes, emulated: Bytes) -> None:
    """Raise RuntimeError where the emulator has another memory than a rule says."""
    if not np.array_equal(expected, emulated):
        raise RuntimeError(
            f"{game} reads the joystick in another way than joystick.py says: "
            "remove its rule there"
        )


def _try_all(actions: Sequence[str], try_action: Try) -> Bytes:
    """The memory after each action, all of them emulated."""
    return np.stack([try_action(action) for action in range(len(actions))])


def _look_in_montezuma(actions: Sequence[str], ram: Bytes, try_action: Try) -> Bytes:
    """The memory after each action in Montezuma's Revenge.

    A diagonal leads where its horizontal direction leads, but for the byte that holds
    the joystick. The button changes nothing in any direction if it changes nothing
    alone, and in some poses it never does.
    """
    numbers = {name: number for number, name in enumerate(actions)}

    def try_name(name: str) -> Bytes:
        return try_action(numbers[name])

    rams = {name: try_name(name) for name in ("NOOP", "UP", "RIGHT")}
    nothing, up, right = (_hold("NOOP", rams[name]) for name in rams)
    # What LEFT and DOWN do follows where two of these three do the same.
    followed = {}
    if np.array_equal(right, nothing):
        followed["LEFT"] = nothing
        if np.array_equal(up, nothing):
            followed["DOWN"] = nothing
    elif np.array_equal(up, right):
        followed["LEFT"] = up
        followed["DOWN"] = up
    for name in ("LEFT", "DOWN"):
        if name in followed:
            rams[name] = _hold(name, followed[name])
        else:
            rams[name] = try_name(name)

    rams["FIRE"] = rams["NOOP"]
    if ram[_POSE_BYTE] not in _POSES_WITHOUT_FIRE:
        rams["FIRE"] = try_name("FIRE")
    fire_matters = not np.array_equal(rams["NOOP"], rams["FIRE"])
    for name in _DIRECTION_BITS:
        rams[name + "FIRE"] = rams[name]
        if fire_matters:
            rams[name + "FIRE"] = try_name(name + "FIRE")

    for name in actions:
        if name not in rams:
            horizontal = name.removeprefix("UP").removeprefix("DOWN")
            rams[name] = _hold(name, rams[horizontal])
    return np.stack([rams[name] for name in actions])


def _hold(action: str, ram: Bytes) -> Bytes:
    """A memory of Montezuma's Revenge, with the byte of the joystick in a position."""
    held = ram.copy()
    pressed = [bit for name, bit in _DIRECTION_BITS.items() if name in action]
    held[_OVERWRITTEN_BYTES["MontezumaRevenge"]] = 0xFF - sum(pressed)
    return held
