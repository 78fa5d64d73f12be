"""`progress=` means the same everywhere: a function, a bar, or nothing."""

from __future__ import annotations

import inspect
import io
import os
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from rich.console import Console
from rich.progress import Progress

import eigenoptions as eo
from eigenoptions import _progress
from eigenoptions._progress import shows_progress
from eigenoptions.options import Purpose
from eigenoptions.samples.features import Raw
from eigenoptions.samples.fitting import fit

ROOMS = eo.maze("i-maze")
OPTIONS = eo.discover(ROOMS, 2)
WALK = eo.collect("MountainCar-v0", 100, rng=0)


def log_crossing(n_steps: int = 2_000) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A place that moves up or down as the action is equal to a switch or not.

    The action alone says nothing about it, so `check_columns` looks at it more closely.
    """
    action = np.random.default_rng(0).integers(2, size=n_steps)
    switch = np.append(0, np.cumsum(action) % 2)
    steps = np.where(action == switch[:-1], 1.0, -1.0)
    place = np.append(0.0, np.cumsum(steps))
    obs = np.stack([place, switch], axis=1)
    return obs[:-1], action, obs[1:]


CROSSING = log_crossing()
CALLS: dict[str, Callable[..., Any]] = {
    "discover": lambda **p: eo.discover(ROOMS, 2, **p).labels,
    "spectrum": lambda **p: eo.spectrum(eo.graph(ROOMS), 3, **p).values.tolist(),
    "solve": lambda **p: eo.solve(ROOMS, OPTIONS.purposes, **p).labels,
    "diffusion_time": lambda **p: eo.diffusion_time(ROOMS, OPTIONS, **p),
    "diffusion_curve": lambda **p: eo.diffusion_curve(ROOMS, OPTIONS, **p).tolist(),
    "best_option_chance": lambda **p: eo.best_option_chance(ROOMS, OPTIONS, **p).chance,
    "hitting_times": lambda **p: float(eo.hitting_times(ROOMS, OPTIONS, **p).mean()),
    "diffusion_estimate": lambda **p: eo.diffusion_estimate(ROOMS, walks=2, **p).mean,
    "q_learning": lambda **p: eo.q_learning(
        ROOMS, OPTIONS, runs=1, episodes=2, **p
    ).returns.tolist(),
    "collect": lambda **p: len(eo.collect(ROOMS, 50, **p)),
    "from_env": lambda **p: eo.from_env("CliffWalking-v1", **p).n_states,
    "explore": lambda **p: eo.explore("CliffWalking-v1", 50, **p).mdp.n_states,
    "check_columns": lambda **p: str(eo.check_columns(CROSSING, **p)),
    "Planner": lambda **p: repr(eo.Planner(CROSSING, cell_size=1.0, **p)),
    "fit": lambda **p: fit(WALK, [Purpose([1.0, 0.0])], Raw(), **p).threshold.tolist(),
}


@pytest.mark.parametrize("name", CALLS)
def test_progress_is_a_function_a_bar_or_nothing(
    name: str, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    call = CALLS[name]
    plain = call()
    reports: list[tuple[int, int]] = []
    assert call(progress=lambda *numbers: reports.append(numbers)) == plain
    assert all(done >= 0 for done, _ in reports)
    assert call(progress=False) == plain
    with pytest.raises(TypeError, match="progress"):
        call(progress=5)
    assert capfd.readouterr().err == ""

    screen = io.StringIO()

    def make_display(console: Console | None) -> Progress:
        assert console is None
        console = Console(file=screen, force_terminal=True, width=80)
        return Progress("{task.description}", console=console)

    monkeypatch.setattr(_progress, "_make_display", make_display)
    assert call(progress=True) == plain
    assert (name in screen.getvalue()) == bool(reports)


def test_every_public_function_with_progress_takes_the_same() -> None:
    n_functions = 0
    for name in eo.__all__:
        function = getattr(eo, name)
        if not inspect.isfunction(function) and function is not eo.Planner:
            continue
        parameter = inspect.signature(function).parameters.get("progress")
        if parameter is not None:
            assert parameter.annotation == "ProgressArgument", name
            n_functions += 1
    # `fit` is not at the root.
    assert n_functions >= len(CALLS) - 1


def test_quick_work_shows_no_bar_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_progress, "_has_spectators", lambda: True)

    def make_display(console: Console | None) -> Progress:
        raise AssertionError("a bar was shown")

    monkeypatch.setattr(_progress, "_make_display", make_display)
    assert eo.discover(ROOMS, 2).labels == OPTIONS.labels


def test_a_function_that_is_called_shows_no_second_bar() -> None:
    seen = []

    @shows_progress
    def inner(progress: Any = None) -> None:
        seen.append(progress)

    @shows_progress
    def outer(progress: Any = None) -> None:
        inner(progress=progress)

    outer(progress=False)
    outer(progress=print)
    assert callable(seen[0])
    assert seen[1] is print


def test_a_terminal_sees_the_bar_and_the_result_stands_alone() -> None:
    """In a real terminal: standard error is one, standard output a pipe."""
    pty = pytest.importorskip("pty")
    code = (
        "import eigenoptions as eo\n"
        "print(eo.discover('four-rooms', 2, progress=True).labels)\n"
    )
    terminal, end = pty.openpty()
    done = subprocess.run(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=end, check=True
    )
    os.close(end)
    shown = os.read(terminal, 10_000).decode()
    os.close(terminal)
    assert "discover" in shown
    assert done.stdout.decode().strip() == "('e2+', 'e2-')"


def test_an_error_removes_the_bar() -> None:
    @shows_progress
    def fail(progress: Any = None) -> None:
        progress(1, 2)
        raise KeyError("wrong")

    with pytest.raises(KeyError):
        fail(progress=True)
    # A second one can be shown.
    with pytest.raises(KeyError):
        fail(progress=True)
    assert np.isfinite(eo.diffusion_time(ROOMS, progress=True))
