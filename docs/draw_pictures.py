"""Where the pictures of the pages come from, and how to draw them anew.

    python docs/draw_pictures.py                          # list pictures and commands
    python docs/draw_pictures.py --write studio.png ...   # draw some of them anew

Most pictures are drawn by an example or by a command of the reproduction or of the
studies. The others are drawn here.
"""

from __future__ import annotations

import runpy
import shutil
import sys
import tempfile
import textwrap
import threading
from collections.abc import Callable
from contextlib import chdir
from functools import partial
from pathlib import Path
from typing import Any

import matplotlib
import numpy as np

import eigenoptions as eo
from eigenoptions._types import FloatArray
from eigenoptions.plots.style import STYLE

ROOT = Path(__file__).resolve().parent.parent
IMAGES = ROOT / "docs" / "images"

# Pictures that examples draw under the same name.
EXAMPLES = {
    "battery.png": "battery",
    "explore.svg": "explore",
    "explore-mountain-car.svg": "explore_mountain_car",
    "four-rooms.svg": "four_rooms",
    "hall.svg": "hall",
    "option-chance.svg": "option_chance",
    "own-environment.svg": "own_environment",
    "parallel-runs.svg": "parallel_runs",
    "pixels.png": "pixels",
    "sb3-ppo.svg": "sb3_ppo",
    "stop-chance.svg": "stop_chance",
    "warehouse.png": "warehouse",
}
# Pictures that have a command of their own, or belong to a long computation.
COMMANDS = {
    "article-diffusion.svg": "python docs/draw_article.py",
    "article-readings.svg": "python docs/draw_article.py",
    "arena-deep.svg": "python -m studies arena page",
    "arena.svg": "python -m studies arena page",
    "demo.svg": "python docs/draw_demo.py --write",
    "exploration.svg": "python -m studies exploration",
    "map.svg": "python docs/draw_map.py --write",
    "montezuma.gif": "python -m reproduction atari",
    "potentials.svg": "python -m studies ogbench",
}
METHODS = {
    "eigen": 4,
    "successor": 4,
    "successor-goals": 4,
    "covering": 4,
    "diffusion": 4,
    "neo": 4,
    "betweenness": 4,
    "bottleneck": None,
    "community": None,
    "random": 4,
}


def draw_example(name: str, picture: Path) -> None:
    """Run an example in an empty folder, and take its picture."""
    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        # Examples may read arguments, and not those of this program.
        sys.argv[1:] = []
        example = str(ROOT / "examples" / f"{name}.py")
        variables = runpy.run_path(example, run_name="__main__")
        written = Path(folder, f"{name.replace('_', '-')}{picture.suffix}")
        if not written.exists():
            # Frames as an SVG are large.
            eo.plots.save_figure(variables["figure"], written, dpi=110)
        shutil.copyfile(written, picture)


def draw_method(method: str, n_options: int | None, picture: Path) -> None:
    """Draw the first four options of a method in four rooms."""
    from matplotlib.patches import Rectangle

    options = eo.discover("four-rooms", n_options, method)[:4]
    mdp = options.mdp
    assert mdp.successors is not None
    assert mdp.coords is not None
    figure = eo.plots.plot_options(options)
    for ax, option in zip(figure.axes, options, strict=True):
        # Red are only those ends to which the option goes.
        running = np.flatnonzero(option.policy >= 0)
        entered = mdp.successors[running, option.policy[running]]
        unused = np.setdiff1d(np.flatnonzero(option.policy < 0), entered)
        for row, column in mdp.coords[unused]:
            ax.add_patch(Rectangle((column - 0.5, row - 0.5), 1, 1, color="white"))
    eo.plots.save_figure(figure, picture)


def draw_reward_aware(picture: Path) -> None:
    """Draw the first four options of the example with a costly room, in orange."""
    from matplotlib.patches import Rectangle

    with tempfile.TemporaryDirectory() as folder, chdir(folder):
        variables = runpy.run_path(str(ROOT / "examples" / "reward_aware.py"))
    # The options of the last method.
    options = variables["options"][:4]
    costly_cells = options.mdp.coords[variables["is_costly"]]
    figure = eo.plots.plot_options(options)
    for ax in figure.axes:
        for row, column in costly_cells:
            corner = (column - 0.5, row - 0.5)
            ax.add_patch(Rectangle(corner, 1, 1, color="tab:orange", alpha=0.4, lw=0))
    eo.plots.save_figure(figure, picture)


def draw_slow_features(picture: Path) -> None:
    """Draw proto-value functions, singular vectors and slow features."""
    import matplotlib.pyplot as plt
    from page_numbers import compute_slow_features

    mdp, kinds = compute_slow_features()
    figure, axes = plt.subplots(3, 4, figsize=(6.75, 5.4), layout="constrained")
    names = ("PVF", "SVD", "SFA")
    for row, name, functions in zip(axes, names, kinds, strict=True):
        for column, ax in enumerate(row):
            values = functions[:, column]
            # The sign is free: show that of the proto-value function.
            if values @ kinds[0][:, column] < 0:
                values = -values
            eo.plots.draw_values(ax, mdp, values)
            ax.set_title(f"{name} {column + 2}", fontsize=8)
    eo.plots.save_figure(figure, picture)
    plt.close(figure)


def draw_agents(picture: Path) -> None:
    """Draw what agents learn alone, and from what `explore` found, as stored."""
    import matplotlib.pyplot as plt
    import pandas as pd

    runs = pd.read_csv(ROOT / "studies" / "arena" / "deep.csv")
    shares = (runs.reached >= 0.5).groupby([runs.agent, runs.way]).mean()
    bars = {
        "PPO alone": ("SB3 PPO", "plain"),
        "PPO, cloned from what explore found": ("SB3 PPO", "explore, cloning"),
        "DQN alone": ("SB3 DQN", "plain"),
        "DQN that samples in Exploring": ("SB3 DQN", "Exploring"),
        "DQN, replay and options from explore": ("SB3 DQN", "explore, way"),
        "no agent: follow found.option()": ("no agent", "followed"),
        "no agent: search of your own": ("no agent", "own search, followed"),
    }
    percent = [100 * shares[agent_and_way] for agent_and_way in bars.values()]
    colors = ["0.7" if "alone" in name else "tab:blue" for name in bars]

    figure, ax = plt.subplots(figsize=(5.6, 2.2), layout="constrained")
    drawn = ax.barh(list(bars), percent, color=colors)
    ax.bar_label(drawn, fmt="%.0f%%", padding=3)
    ax.invert_yaxis()
    ax.set(xlim=(0, 105), xlabel="goals learned in percent")
    ax.spines[["top", "right"]].set_visible(False)
    eo.plots.save_figure(figure, picture)
    plt.close(figure)


def draw_decisions(picture: Path) -> None:
    """Draw an episode of random decisions as the agent and the environment see it."""
    import gymnasium as gym
    import matplotlib.pyplot as plt

    maze = gym.make("eigenoptions/FourRooms-v0", max_episode_steps=200)
    options = eo.discover(maze, 8)
    env = eo.OptionsWrapper(maze, options, gamma=0.99, option_chance=0.3)
    # An episode with few decisions that reaches the goal.
    env.action_space.seed(2)
    env.reset(seed=0)

    figure, ax = plt.subplots(figsize=(6.75, 1.5), layout="constrained")
    n_steps = 0
    n_decisions = 0
    is_over = False
    while not is_over:
        action = env.action_space.sample()
        _, _, terminated, truncated, info = env.step(action)
        is_over = terminated or truncated
        duration = info["duration"]
        is_option = info["option"] >= 0
        color = "tab:blue" if is_option else "0.7"
        ax.barh("agent", duration - 0.15, left=n_steps, color=color)
        for step in range(n_steps, n_steps + duration):
            ax.barh("environment", 0.85, left=step, color=color)
        if is_option:
            label = options[info["option"]].label
            if duration > 4:
                label += f"   duration {duration}, discount {info['discount']:.2f}"
            middle = n_steps + (duration - 0.15) / 2
            ax.text(middle, 0, label, color="white", ha="center", va="center", size=8)
        n_steps += duration
        n_decisions += 1

    ax.invert_yaxis()
    ax.tick_params(length=0)
    ax.set_xticks([])
    ax.set_xlabel(f"{n_decisions} decisions, {n_steps} steps")
    ax.spines[:].set_visible(False)
    eo.plots.save_figure(figure, picture)
    plt.close(figure)


def draw_promises(picture: Path) -> None:
    """Draw an eigenvector of a repeated eigenvalue, of three solvers and of ours."""
    import matplotlib.pyplot as plt
    from scipy.linalg import eigh
    from scipy.sparse.linalg import eigsh

    # In a square room e2 and e3 have the same eigenvalue.
    room = eo.maze("\n".join(["." * 20] * 20))
    W = eo.graph(room)
    laplacian = eo.laplacian(W)
    second_vectors: dict[str, list[FloatArray]] = {"SciPy": [], "this library": []}
    for seed in (0, 1):
        start = np.random.default_rng(seed).normal(size=room.n_states)
        # The nearest to a number below zero are the smallest.
        _, vectors = eigsh(laplacian.tocsc(), 4, sigma=-0.01, v0=start)
        second_vectors["SciPy"].append(vectors[:, 1])
        ours = eo.spectrum(W, 4, rng=seed)
        second_vectors["this library"].append(ours.vectors[:, 1])
    _, vectors = eigh(laplacian.toarray())
    second_vectors["SciPy"].append(vectors[:, 1])
    second_vectors["this library"].append(eo.spectrum(W).vectors[:, 1])

    figure, axes = plt.subplots(2, 3, figsize=(5.0, 2.9), layout="constrained")
    for row, (name, vectors) in zip(axes, second_vectors.items(), strict=True):
        for ax, vector in zip(row, vectors, strict=True):
            eo.plots.draw_values(ax, room, vector)
        row[0].text(-0.1, 0.5, name, transform=row[0].transAxes, ha="right", size=9)
    solvers = ("Lanczos, seed 0", "Lanczos, seed 1", "LAPACK")
    for ax, solver in zip(axes[0], solvers, strict=True):
        ax.set_title(solver, fontsize=9)
    eo.plots.save_figure(figure, picture)
    plt.close(figure)


def draw_benchmarks(picture: Path) -> None:
    """Draw ratios to what a user would write, and cosines against ALLO's, as stored."""
    import matplotlib.pyplot as plt
    import pandas as pd

    table = pd.read_csv(ROOT / "benchmarks" / "ratios.csv")
    table = table[(table.unit == "s") & table.ratio.notna()]
    figure, (left, right) = plt.subplots(
        1, 2, figsize=(6.75, 2.6), width_ratios=(1.5, 1), layout="constrained"
    )
    labels = [textwrap.fill(name, 24) for name in table.name]
    colors = np.where(table.ratio >= 1, "tab:blue", "0.7")
    # Bars begin at 1, where both are equally fast.
    left.barh(labels, table.ratio - 1, left=1, color=colors)
    for i, ratio in enumerate(table.ratio):
        # Two digits, without an exponent.
        number = f"{float(f'{ratio:.2g}'):g}"
        left.text(1.15 * max(ratio, 1), i, number, va="center", size=7)
    left.invert_yaxis()
    left.axvline(1, color="black", lw=0.8)
    left.set(xscale="log", xlim=(0.3, 3_000), xlabel="times as fast as the rival")
    left.tick_params(axis="y", labelsize=7, length=0)

    cosines = pd.read_csv(ROOT / "benchmarks" / "deep.csv")
    cosines = cosines[cosines.kind == "jitter"]
    right.plot([0, 1], [0, 1], color="0.7", lw=0.8)
    right.scatter(cosines.allo, cosines.ours, s=12, color="tab:blue")
    right.set(xlim=(0, 1.03), ylim=(0, 1.03), aspect="equal")
    right.set(xlabel="cosine of ALLO", ylabel="cosine of this library")
    for ax in (left, right):
        ax.spines[["top", "right"]].set_visible(False)
    eo.plots.save_figure(figure, picture)
    plt.close(figure)


def draw_report(picture: Path) -> None:
    """Take a picture of the top of the report that ``make reproduce`` wrote."""
    from playwright.sync_api import sync_playwright

    report = ROOT / "report" / "index.html"
    if not report.exists():
        raise SystemExit(f"there is no {report}: run make reproduce first")
    clip: Any = {"x": 0, "y": 0, "width": 1280, "height": 930}
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(
            executable_path=find_browser(), args=["--no-sandbox"]
        )
        page = browser.new_page(viewport={"width": 1280, "height": 930})
        page.goto(report.as_uri())
        page.screenshot(path=picture, clip=clip)
        browser.close()
    _reduce_colors(picture)


def _reduce_colors(picture: Path, n_colors: int = 64) -> None:
    """Store a picture with few colours, which makes the file a third as large."""
    from PIL import Image

    Image.open(picture).convert("RGB").quantize(n_colors).save(picture, optimize=True)


def find_browser() -> str | None:
    """The path of a browser, or None for the one that Playwright installs."""
    browsers = map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))
    return next(filter(None, browsers), None)


def draw_studio(picture: Path) -> None:
    """Take a picture of the studio in a browser."""
    from playwright.sync_api import sync_playwright

    from eigenoptions.studio import write_studio
    from eigenoptions.studio.server import make_server

    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        write_studio(Path(folder))
        server = make_server(Path(folder))
        threading.Thread(target=server.serve_forever, daemon=True).start()
        browser = playwright.chromium.launch(
            executable_path=find_browser(), args=["--no-sandbox"]
        )
        page = browser.new_page(
            viewport={"width": 1400, "height": 860}, reduced_motion="reduce"
        )
        page.goto(f"http://127.0.0.1:{server.server_port}/")
        page.get_by_text("computed in").wait_for()
        page.wait_for_timeout(5_000)
        # How long it took says nothing about the page, so that line is left out.
        clip: Any = {"x": 0, "y": 0, "width": 1400, "height": 822}
        page.screenshot(path=picture, clip=clip)
        browser.close()
        server.shutdown()
        server.server_close()


HERE: dict[str, Callable[[Path], None]] = {
    "agents.svg": draw_agents,
    "benchmarks.svg": draw_benchmarks,
    "decisions.svg": draw_decisions,
    "methods/reward-aware.svg": draw_reward_aware,
    "promises.svg": draw_promises,
    "report.png": draw_report,
    "sfa.svg": draw_slow_features,
    "studio.png": draw_studio,
    **{
        f"methods/{method}.svg": partial(draw_method, method, n_options)
        for method, n_options in METHODS.items()
    },
}


def list_commands() -> dict[str, str]:
    """The command that draws each picture."""
    commands = dict(COMMANDS)
    for picture in [*EXAMPLES, *HERE]:
        commands[picture] = f"python docs/draw_pictures.py --write {picture}"
    return commands


def draw(picture: str) -> None:
    """Draw a picture anew."""
    if picture in EXAMPLES:
        with matplotlib.rc_context(STYLE):
            draw_example(EXAMPLES[picture], IMAGES / picture)
    elif picture in HERE:
        with matplotlib.rc_context(STYLE):
            HERE[picture](IMAGES / picture)
    else:
        raise SystemExit(
            f"{picture}: {list_commands().get(picture, 'no such picture')}"
        )


def main() -> None:
    """List the pictures, or draw those that are named after ``--write``."""
    arguments = sys.argv[1:]
    if arguments[:1] == ["--write"]:
        for picture in arguments[1:]:
            draw(picture)
        return
    for picture, command in sorted(list_commands().items()):
        print(f"{picture:30} {command}")


if __name__ == "__main__":
    main()
