"""The studio in a real browser: its numbers are those of the library.

A person can draw, see and export.
"""

from __future__ import annotations

import base64
import re
import shutil
import threading
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import eigenoptions as eo
from eigenoptions._text import draw_arrows, find_moves
from eigenoptions.cli import main
from eigenoptions.mdp.mazes import open_map, perfect_map, rooms_map
from eigenoptions.studio.folder import draw_rows
from eigenoptions.studio.server import make_server

BROWSER = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))),
    None,
)
if BROWSER is None:
    pytest.skip(
        "no chromium on this machine: the page is not tested", allow_module_level=True
    )

from playwright.sync_api import Browser, Page, expect, sync_playwright  # noqa: E402

# Loaded machines are slow; a condition that holds is seen at once all the same.
TIMEOUT = 120_000.0
expect.set_options(timeout=TIMEOUT)
FLAGS = [
    "--no-sandbox",
    "--disable-gpu",
    "--no-first-run",
    "--disable-background-networking",
]
MAZES = {
    **{name: "\n".join(draw_rows(eo.maze(name))) for name in eo.mazes()},
    "pieces": "...#...\n.S.#..G",
    "corridor": "S......G",
    "square": "..\n..",
    "ring": "....\n.##.\n.##.\n....",
    "cross": "#.#\n...\n#.#",
    "wide": open_map(4, 11),
    "tall": open_map(9, 6),
    "symmetric": rooms_map(2, 2, 5, centred=True),
    **{f"rooms {seed}": rooms_map(2, 3, 3, rng=seed) for seed in range(4)},
    **{f"corridors {seed}": perfect_map(4, 5, rng=seed) for seed in range(4)},
    "large": rooms_map(3, 3, 7, rng=1),
}
Opens = Callable[..., Page]


@pytest.fixture(scope="module")
def address(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The written folder, served by a plain web server."""
    folder = tmp_path_factory.mktemp("studio")
    assert main(["studio", "--out", str(folder)]) == 0
    server = make_server(folder)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    yield f"http://127.0.0.1:{server.server_port}/"
    server.shutdown()
    server.server_close()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(
            executable_path=BROWSER, args=FLAGS, timeout=TIMEOUT
        )
        yield started
        started.close()


@pytest.fixture
def open_page(browser: Browser, address: str) -> Iterator[Opens]:
    """Opens pages; none of them may complain in the console or ask another host."""
    troubles: list[str] = []
    contexts = []

    def visit(link: str = "", width: int = 1280, **settings: Any) -> Page:
        size: Any = {"width": width, "height": 844 if width < 500 else 900}
        contexts.append(
            browser.new_context(viewport=size, reduced_motion="reduce", **settings)
        )
        page = contexts[-1].new_page()
        page.set_default_timeout(TIMEOUT)
        page.on(
            "console",
            lambda m: (
                troubles.append(m.text) if m.type in ("error", "warning") else None
            ),
        )
        page.on("pageerror", lambda error: troubles.append(str(error)))
        page.on(
            "request",
            lambda r: (
                None if r.url.startswith((address, "blob:")) else troubles.append(r.url)
            ),
        )
        page.goto(address + link)
        page.wait_for_selector("html[data-ready]")
        return page

    yield visit
    for context in contexts:
        context.close()
    assert troubles == []


@pytest.fixture(scope="module")
def engine(browser: Browser, address: str) -> Iterator[Callable[[str, Any], Any]]:
    """Runs a script with the page's modules at hand."""
    page = browser.new_page()
    page.set_default_timeout(TIMEOUT)
    page.goto(f"{address}icon.svg")
    names = ("algebra", "model", "methods", "walks", "engine")
    imports = "".join(
        f"Object.assign(m, await import('{address}{name}.js'));" for name in names
    )
    yield lambda script, given: page.evaluate(
        f"async (given) => {{ const m = {{}}; {imports} {script} }}", given
    )
    page.close()


def make_request(text: str, **settings: Any) -> dict[str, Any]:
    usual = {
        "n_options": 8,
        "operator": "normalized",
        "gamma": 0.9,
        "option_chance": None,
        "seed": 0,
    }
    return {"map": text, "shown": 12, **usual, **settings}


def make_link(text: str) -> str:
    """A map as the address holds it."""
    rows = text.split("\n")
    bits = np.packbits([c != "#" for c in "".join(rows)], bitorder="little").tobytes()
    code = base64.urlsafe_b64encode(bits).decode().rstrip("=")
    return f"{len(rows)}x{len(rows[0])}.{code}.."


def click_cell(page: Page, row: int, column: int) -> None:
    box = page.locator("#board").bounding_box()
    assert box is not None
    rows = int(page.input_value("#rows"))
    columns = int(page.input_value("#cols"))
    place = {
        "x": (column + 0.5) * box["width"] / columns,
        "y": (row + 0.5) * box["height"] / rows,
    }
    page.locator("#board").click(position=place)  # type: ignore[arg-type]


def write_policy(mdp: eo.MDP, policy: np.ndarray, shape: tuple[int, int]) -> str:
    """An option as the page writes it."""
    grid = np.full(shape, "█")
    assert mdp.coords is not None
    grid[tuple(mdp.coords.T)] = draw_arrows(
        policy, find_moves(mdp.coords, policy, mdp.most_likely_successors)
    )
    return "\n".join("".join(row) for row in grid)


def expect_states(page: Page, text: str) -> None:
    expect(page.locator("#states")).to_have_text(text)


# The numbers of the page are those of the library.


@pytest.mark.parametrize("name", list(MAZES))
def test_spectrum_and_options_are_those_of_the_library(engine, name):
    mdp = eo.maze(MAZES[name] + "\n")
    cases = [("normalized", 0.9), ("normalized", 0.5)]
    if name in ("four-rooms", "symmetric", "pieces", "ring"):
        cases += [
            (operator, 0.9)
            for operator in ("combinatorial", "random-walk", "successor")
        ]
    requests = [
        make_request(MAZES[name], operator=operator, gamma=gamma)
        for operator, gamma in cases
    ]
    answers = engine(
        """return given.map((body) => { const p = m.ANSWERS.picture(body);
            const {labels, eigenvalues, mean_length, pieces} = p;
            return {labels, eigenvalues, mean_length, pieces,
                vectors: [...p.vectors], policies: [...p.policies],
                values: [...p.values]}; })""",
        requests,
    )
    for (operator, gamma), answer in zip(cases, answers, strict=True):
        zeros = answer["pieces"]
        spectrum = eo.spectrum(eo.graph(mdp), min(zeros + 12, mdp.n_states), operator)
        options = eo.solve(mdp, eo.eigenpurposes(spectrum), gamma)
        # A cluster of equal eigenvalues is never cut, so the library may give some
        # more.
        n = len(answer["labels"])
        assert zeros == spectrum.n_zero
        assert answer["labels"] == list(options.labels)[:n]
        assert answer["eigenvalues"] == pytest.approx(
            spectrum.values[zeros:][: n // 2], rel=1e-9
        )
        assert answer["vectors"] == pytest.approx(
            spectrum.vectors[:, zeros:].T[: n // 2].ravel(), abs=1e-6
        )
        assert answer["policies"] == options.policy[:n].ravel().tolist()
        assert answer["values"] == pytest.approx(options.value[:n].ravel(), abs=1e-6)
        assert answer["mean_length"] == pytest.approx(options.mean_length[:n])


@pytest.mark.parametrize(
    "name", [name for name in MAZES if name not in ("pieces", "large")]
)
@pytest.mark.parametrize("chance", [None, 0.1])
def test_diffusion_times_are_those_of_the_library(engine, name, chance):
    mdp = eo.maze(MAZES[name] + "\n")
    options = eo.discover(mdp, min(6, 2 * mdp.n_states - 2))
    times = engine(
        """const t = m.table(m.read(given[0]));
        const settings = {many: 6, operator: "normalized", gamma: 0.9};
        const walks = new m.Walk(t, m.discover(t, "eigen", settings).policies);
        return Array.from({length: given[1] + 1},
            (_, n) => walks.time(n, n ? given[2] : null));""",
        [MAZES[name], len(options), chance],
    )
    for time, exact in zip(
        times, eo.diffusion_curve(mdp, options, option_chance=chance), strict=True
    ):
        # In double precision alone, what is far beyond the chart cannot be computed.
        assert time == pytest.approx(exact, rel=1e-6) or (time is None and exact > 1e7)


def test_best_chance_and_random_goals_are_measured(engine):
    maze = eo.maze("i-maze")
    best = eo.best_option_chance(maze, eo.discover(maze, 8))
    events = engine(
        "return [...m.STREAMS.measure(given)]", make_request(MAZES["i-maze"])
    )
    assert events[0]["primitive"] == pytest.approx(eo.diffusion_time(maze))
    assert events[-1]["best"] == pytest.approx(best.chance, rel=0.02)
    assert events[-1]["time"] == pytest.approx(best.diffusion_time, rel=1e-5)
    tuned = [event["time"] for event in events if "tuned" in event]
    four = eo.discover(maze, 4)
    times = [
        eo.diffusion_time(maze, four, option_chance=chance)
        for chance in (0.01, 0.03, 0.1, 0.3)
    ]
    assert tuned[1] == pytest.approx(min(times), rel=1e-6)
    found = engine(
        """const t = m.table(m.read(given));
        const {labels, policies} = m.discover(t, "random", {many: 5, seed: 4});
        return [labels, [...policies]]""",
        MAZES["i-maze"],
    )
    goals = [int(label.split()[1]) for label in found[0]]
    purposes = [
        eo.Purpose(np.arange(19) == goal, goal=goal, exact=True) for goal in goals
    ]
    assert found[1] == eo.solve(maze, purposes, 1 - 0.5 / 20).policy.ravel().tolist()


def test_learning_with_options_reaches_the_goal(engine):
    returns = engine(
        """const t = m.table(m.read(given)), rand = m.random(1);
        const settings = {many: 4, operator: "normalized", gamma: 0.9};
        const {policies} = m.discover(t, "eigen", settings);
        const rows = [0, 1, 2, 3].map((o) => policies.subarray(o * t.n, (o + 1) * t.n));
        return m.learn(t, rows, 0.3, {episodes: 300, steps: 40, rand})""",
        "S..\n.#.\n..G",
    )
    assert np.mean(returns[-50:]) > 0.9


@pytest.mark.parametrize("kind", ["rooms", "corridors"])
def test_random_mazes_are_connected_and_fit(engine, kind):
    for seed in range(3):
        rows = engine(
            "return m.ANSWERS.random(given).map",
            {"kind": kind, "rows": 17, "cols": 15, "seed": seed},
        )
        assert len(rows) <= 17
        assert len(rows[0]) <= 15
        mdp = eo.maze("\n".join(rows) + "\n")
        assert eo.spectrum(eo.graph(mdp), 2).n_zero == 1
        assert None not in (mdp.start, mdp.goal)


@pytest.mark.parametrize(
    "text", ["\n\nS..\r\n.X.\n", "3,4\n....\n.##\n..G.\n", " # \n   "]
)
def test_maps_are_read_as_by_the_library(engine, text):
    assert engine("return m.read(given)", text) == draw_rows(eo.maze(text))


@pytest.mark.parametrize(
    ("path", "text", "words"),
    [
        ("maze", "S..\n.?G", "line 2 column 2"),
        ("maze", "\n", "empty"),
        ("maze", "SS", "2 starts"),
        ("picture", open_map(30, 30), "700 states"),
        ("picture", open_map(30, 30), "eo.discover(mdp, 8)"),
        ("picture", "S", "nowhere"),
        ("measure", open_map(20, 20), "320 states"),
        ("measure", "..#..", "infinite"),
    ],
)
def test_what_the_page_cannot_compute_is_explained(engine, path, text, words):
    if path == "measure":
        call = "[...m.STREAMS[given[0]](given[1])];"
    else:
        call = "m.ANSWERS[given[0]](given[1]);"
    script = "try { " + call + " } catch (error) { return error.message; }"
    assert words in engine(script, [path, make_request(text)])


def test_saved_options_are_read_by_the_library(open_page, tmp_path):
    page = open_page("#n=8&o=random-walk&g=0.5&e=3-")
    page.click("[data-tool=wall]")
    click_cell(page, 2, 3)
    expect_states(page, "103 states")
    page.click("#tab-take")
    with page.expect_download() as waiting:
        page.click("#save")
    waiting.value.save_as(tmp_path / "page.safetensors")
    # The lines of Python on the page give the same options.
    names: dict[str, Any] = {}
    lines = page.inner_text("#python").replace(
        'save("options', f'save("{tmp_path}/options'
    )
    exec(compile(lines.replace("print(", "str("), "studio", "exec"), names)
    options = names["options"]
    mdp = names["mdp"]
    saved = eo.load_options(tmp_path / "page.safetensors", mdp)
    assert np.array_equal(saved.policy, options.policy)
    assert np.allclose(saved.value, options.value)
    assert saved.labels == options.labels
    assert np.allclose(saved.eigenvalues, options.eigenvalues)
    assert np.array_equal(saved.mdp.coords, mdp.coords)
    assert saved.mdp.start == mdp.start
    assert saved.mdp.goal == mdp.goal
    shown = page.locator("#astext").text_content()
    assert shown == write_policy(mdp, options[3].policy, (13, 13))


# What a person does.


def test_walls_are_drawn_and_undone(open_page):
    page = open_page()
    expect_states(page, "104 states")
    page.click("[data-tool=wall]")
    click_cell(page, 3, 3)
    expect_states(page, "103 states")
    page.click("#undo")
    expect_states(page, "104 states")
    page.keyboard.press("Control+Shift+z")
    expect_states(page, "103 states")
    page.click("[data-tool=free]")
    click_cell(page, 3, 3)
    expect_states(page, "104 states")
    expect(page.locator("#builtin")).to_have_value("four-rooms")


def test_a_fast_stroke_has_no_holes(open_page):
    page = open_page("#m=open-room")
    page.click("[data-tool=wall]")
    box = page.locator("#board").bounding_box()
    page.mouse.move(
        box["x"] + 1.5 * box["width"] / 12, box["y"] + 5.5 * box["height"] / 12
    )
    page.mouse.down()
    page.mouse.move(
        box["x"] + 9.5 * box["width"] / 12, box["y"] + 5.5 * box["height"] / 12
    )
    page.mouse.up()
    expect_states(page, "91 states")


def test_the_keyboard_alone_draws_places_and_runs(open_page):
    page = open_page()
    page.locator("#board").focus()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Space")
    expect_states(page, "103 states")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("g")
    page.keyboard.press("Enter")
    expect(page.locator("#board")).to_have_attribute(
        "data-run", re.compile("stopped at")
    )


def test_mazes_are_chosen_sized_generated_and_pasted(open_page):
    page = open_page()
    page.select_option("#builtin", "i-maze")
    expect_states(page, "19 states")
    page.fill("#cols", "9")
    page.locator("#cols").press("Enter")
    expect_states(page, "87 states, 2 components")
    page.select_option("#kind", "corridors")
    page.fill("#rows", "21")
    page.fill("#cols", "21")
    page.click("#dice")
    expect_states(page, "199 states")
    page.click("#paste")
    page.fill("#paste-text", "S..\n.?G")
    page.click("text=Use this maze")
    expect(page.locator("#paste-error")).to_contain_text("unknown character '?'")
    page.fill("#paste-text", "S..\n.#G")
    page.click("text=Use this maze")
    expect_states(page, "5 states")


def test_a_link_restores_everything(open_page):
    page = open_page()
    page.click("[data-tool=wall]")
    click_cell(page, 2, 2)
    expect_states(page, "103 states")
    page.select_option("#operator", "combinatorial")
    page.click("#gallery button >> nth=3")
    page.click("[data-sign='-']")
    expect(page.locator("#which")).to_have_text("e5−")
    other = open_page(page.url[page.url.index("#") :])
    expect(other.locator("#which")).to_have_text("e5−")
    expect_states(other, "103 states")
    assert (
        other.locator("#astext").text_content()
        == page.locator("#astext").text_content()
    )
    for bad, words in (
        ("m=13x13.AAAA..", "incomplete"),
        ("m=999x999.A..", "64"),
        ("e=999&g=7&n=-1&o=x&t=y", ""),
    ):
        broken = open_page(f"#{bad}")
        expect_states(broken, "104 states")
        expect(broken.locator("#message")).to_contain_text(words)


def test_an_option_runs_from_a_click_to_its_end(open_page):
    rooms = eo.maze("four-rooms")
    path = eo.discover(rooms, 2).follow(0, rooms.goal)
    page = open_page()
    click_cell(page, *rooms.coords[rooms.goal])
    row, column = rooms.coords[path[-1]]
    end = f"stopped at {13 * row + column} after {len(path) - 1}"
    expect(page.locator("#board")).to_have_attribute("data-run", end)
    page.locator("#board").hover(position={"x": 15, "y": 15})
    expect(page.locator("#readout")).to_contain_text("wall")


def test_too_large_a_maze_tells_what_to_type(open_page):
    page = open_page(f"#m={make_link(open_map(25, 25))}")
    page.fill("#cols", "40")
    page.locator("#cols").press("Enter")
    expect(page.locator("#message")).to_contain_text('eo.maze("maze.txt")')


def test_measuring_follows_the_newest_edit(open_page):
    page = open_page(f"#t=measure&n=64&m={make_link(rooms_map(2, 2, 8))}")
    page.wait_for_selector("#measure[data-state=running]")
    page.select_option("#builtin", "i-maze")
    page.wait_for_selector("#measure[data-state=done]")
    assert "Moves only: 246 steps" in page.inner_text("#curve-note")
    page.click("#use-best")
    expect(page.locator("#chance-out")).not_to_have_text("uniform")


def test_learning_curves_arrive_and_need_a_task(open_page):
    page = open_page("#t=learn&m=i-maze&n=8")
    page.wait_for_selector("#learn[data-state=done]")
    expect(page.locator("#learn-note")).to_contain_text("the shortest path has 16")
    page.click("#paste")
    page.fill("#paste-text", "...")
    page.click("text=Use this maze")
    expect(page.locator("#learn-note")).to_contain_text("no start")


@pytest.mark.parametrize(
    ("kind", "name", "start"),
    [
        ("txt", "i-maze.txt", b"#####\n#..G#"),
        ("png", "i-maze.png", b"\x89PNG"),
        ("webm", "i-maze-e2+.webm", b"\x1aE\xdf\xa3"),
    ],
)
def test_mazes_and_films_are_downloaded(open_page, tmp_path, kind, name, start):
    page = open_page("#m=i-maze")
    page.click("summary:has-text('Download')")
    with page.expect_download() as waiting:
        page.click(f"[data-download={kind}]")
    waiting.value.save_as(tmp_path / "file")
    assert waiting.value.suggested_filename == name
    assert (tmp_path / "file").read_bytes().startswith(start)


@pytest.mark.parametrize(("width", "scheme"), [(390, "light"), (1280, "dark")])
def test_every_view_fits_and_every_control_has_a_name(open_page, width, scheme):
    page = open_page("#m=i-maze&n=8", width, color_scheme=scheme)
    assert page.evaluate("document.documentElement.dataset.theme") == scheme
    for view in ("skills", "measure", "learn", "take"):
        page.click(f"#tab-{view}")
        expect(page.locator(f"#{view}")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    nameless = page.evaluate(
        """[...document.querySelectorAll("button, input, select, textarea")]
            .filter((e) => !e.textContent.trim()
                && !e.getAttribute("aria-label") && !e.labels?.length)
            .map((e) => e.outerHTML)"""
    )
    assert nameless == []
