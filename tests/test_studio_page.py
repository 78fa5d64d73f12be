"""The studio's page in a real browser: what a person draws, sees and takes away, compared with the library."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import eigenoptions as eo
from eigenoptions._text import arrows, moves
from eigenoptions.evaluation import diffusion_time
from eigenoptions.mdp.maps import open_map, rooms_map
from eigenoptions.options.solver import lengths

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
if BROWSER is None:
    pytest.skip("no chromium on this machine: the studio's page is not tested", allow_module_level=True)

from playwright.sync_api import Browser, Locator, Page, expect, sync_playwright  # noqa: E402

FLAGS = [
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
]  # fmt: skip
SIZES = {"phone": (390, 844), "small": (1024, 768), "desktop": (1400, 920)}
VIEWS = ("skills", "compare", "measure", "race", "learn", "sample", "take")
SECOND = 1000.0
# Machines under load are slow: a condition that holds is seen at once all the same.
expect.set_options(timeout=300 * SECOND)


@pytest.fixture(scope="module")
def atari(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Results as the Atari part would leave them, as small as they come."""
    folder = tmp_path_factory.mktemp("atari")
    icon = bytes.fromhex(
        "89504e470d0a1a0a0000000d4948445200000001000000010802000000907753de0000000c4944415408d763f8ffff3f0005fe02fe"
        "dccc59e70000000049454e44ae426082"
    )
    (folder / "where.png").write_bytes(icon)
    games = [
        {"name": "Freeway", "options": [{"label": "option 1", "heatmap": "where.png", "note": "crosses"}]}
    ]
    (folder / "index.json").write_text(json.dumps({"format": 1, "games": games}), encoding="utf-8")
    return folder


@pytest.fixture(scope="module")
def address(atari: Path) -> Iterator[str]:
    """Where `eigenoptions studio` says it is; Ctrl-C ends it with exit code 0."""
    command = "import sys; from eigenoptions.cli import main; sys.exit(main())"
    args = ["studio", "--no-browser", "--port", "0", "--atari", str(atari)]
    with subprocess.Popen(
        [sys.executable, "-c", command, *args],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        encoding="utf-8",
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    ) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        found = re.match(r"(http://127\.0\.0\.1:\d+/)", process.stdout.readline())
        try:
            assert found
            yield found[1]
        finally:
            process.send_signal(signal.SIGINT)
            assert process.wait(300) == 0
            assert process.stderr.read() == ""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=BROWSER, args=FLAGS, timeout=300 * SECOND)
        yield found
        found.close()


Opens = Callable[..., Page]


@pytest.fixture(scope="module")
def spare() -> list[Page]:
    """Pages of the usual size that no test uses: a second load in the same page takes half the time."""
    return []


@pytest.fixture
def opened(browser: Browser, address: str, spare: list[Page]) -> Iterator[Opens]:
    """Opens pages; none of them may complain in the console or ask another host."""
    troubles: list[str] = []
    listeners: dict[Any, Any] = {
        "console": lambda m: troubles.append(m.text) if m.type in ("error", "warning") and m.text else None,
        "pageerror": lambda error: troubles.append(str(error)),
        "request": lambda r: None if r.url.startswith((address, "blob:")) else troubles.append(r.url),
    }
    usual, special = [], []

    def visit(link: str = "", size: str = "desktop", **how: Any) -> Page:
        width, height = SIZES[size]
        alike = size == "desktop" and not how
        if alike and spare:
            page = spare.pop()
        else:
            page = browser.new_context(
                viewport={"width": width, "height": height}, reduced_motion="reduce", **how
            ).new_page()
            page.set_default_timeout(300 * SECOND)
        (usual if alike else special).append(page)
        for event, listener in listeners.items():
            page.on(event, listener)
        page.goto(address + link)
        page.wait_for_selector("html[data-ready]")
        return page

    yield visit
    for page in usual:
        page.evaluate("localStorage.clear()")
        for event, listener in listeners.items():
            page.remove_listener(event, listener)
        page.goto("about:blank")
    spare.extend(usual)
    for page in special:
        page.context.close()
    assert [t for t in troubles if "status of 422" not in t] == []


def cell(page: Page, row: int, col: int) -> dict[str, float]:
    """Middle of a cell on the board, from its upper left corner."""
    box = page.locator("#board").bounding_box()
    assert box is not None
    rows, cols = int(page.input_value("#rows")), int(page.input_value("#cols"))
    return {"x": (col + 0.5) * box["width"] / cols, "y": (row + 0.5) * box["height"] / rows}


def click(page: Page, row: int, col: int) -> None:
    page.locator("#board").click(position=cell(page, row, col))


def states(page: Page) -> Locator:
    return page.locator("#states")


def text_of(mdp: eo.MDP, policy: np.ndarray, shape: tuple[int, int]) -> str:
    """An option as the page writes it."""
    grid = np.full(shape, "█")
    assert mdp.coords is not None
    assert mdp.successors is not None
    grid[tuple(mdp.coords.T)] = arrows(policy, moves(mdp.coords, policy, mdp.successors))
    return "\n".join("".join(row) for row in grid)


def option_on(page: Page) -> str:
    return page.locator("#astext").text_content() or ""


def color(page: Page, row: int, col: int) -> list[int]:
    """Colour of a cell near its corner."""
    at = cell(page, row, col)
    box = page.locator("#board").bounding_box()
    assert box is not None
    share = [
        (at["x"] + 0.35 * box["width"] / 13) / box["width"],
        (at["y"] + 0.35 * box["height"] / 13) / box["height"],
    ]
    script = """([x, y]) => { const c = document.getElementById("board");
        const one = new OffscreenCanvas(1, 1).getContext("2d");
        one.drawImage(c, -Math.floor(x * c.width), -Math.floor(y * c.height));
        return [...one.getImageData(0, 0, 1, 1).data].slice(0, 3); }"""
    found: list[int] = page.evaluate(script, share)
    return found


def drop(page: Page, name: str, content: str) -> None:
    script = """([name, content]) => { const data = new DataTransfer();
        data.items.add(new File([content], name, {type: "text/plain"}));
        const how = {dataTransfer: data, bubbles: true, cancelable: true};
        for (const kind of ["dragenter", "dragover", "drop"])
            document.body.dispatchEvent(new DragEvent(kind, how)); }"""
    page.evaluate(script, [name, content])


# Drawing


def test_a_wall_drawn_is_a_state_less_and_undo_brings_it_back(opened: Opens) -> None:
    page = opened()
    expect(states(page)).to_have_text("104 states")
    page.click("[data-tool=wall]")
    click(page, 3, 3)
    expect(states(page)).to_have_text("103 states")
    expect(page.locator("#builtin")).to_have_value("")
    page.click("#undo")
    expect(states(page)).to_have_text("104 states")
    expect(page.locator("#builtin")).to_have_value("four-rooms")
    page.click("#redo")
    expect(states(page)).to_have_text("103 states")
    page.keyboard.press("Control+z")
    expect(states(page)).to_have_text("104 states")
    expect(page.locator("#undo")).to_be_disabled()


def test_a_stroke_is_one_wall_without_holes_and_one_step_back(opened: Opens) -> None:
    page = opened("#m=open-room")
    expect(states(page)).to_have_text("100 states")
    page.click("[data-tool=wall]")
    box = page.locator("#board").bounding_box()
    assert box is not None
    a, b = cell(page, 5, 1), cell(page, 5, 9)
    page.mouse.move(box["x"] + a["x"], box["y"] + a["y"])
    page.mouse.down()
    page.mouse.move(box["x"] + b["x"], box["y"] + b["y"])
    page.mouse.up()
    expect(states(page)).to_have_text("91 states")
    page.click("[data-tool=free]")
    click(page, 5, 4)
    expect(states(page)).to_have_text("92 states")
    page.click("#undo")
    page.click("#undo")
    expect(states(page)).to_have_text("100 states")


def test_the_keyboard_alone_draws_places_and_runs(opened: Opens) -> None:
    page = opened()
    page.keyboard.press("Tab")
    page.locator("#board").focus()
    page.keyboard.press("ArrowDown")
    expect(page.locator("#readout")).to_contain_text("(2, 1) · state 10")
    page.keyboard.press("Space")
    expect(states(page)).to_have_text("103 states")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("g")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("s")
    page.keyboard.press("Enter")
    expect(page.locator("#board")).to_have_attribute("data-run", re.compile("stopped at"))
    page.click("#tab-take")
    mdp = eo.maze(re.search(r'"""\n(.*)\n"""', page.inner_text("#python"), re.DOTALL)[1])  # type: ignore[index]
    assert mdp.coords is not None
    assert (mdp.coords[mdp.goal].tolist(), mdp.coords[mdp.start].tolist()) == ([3, 1], [4, 1])


def test_a_finger_draws_too(opened: Opens) -> None:
    page = opened(size="phone", has_touch=True, is_mobile=True)
    page.tap("[data-tool=wall]")
    page.locator("#board").tap(position=cell(page, 2, 2))
    expect(states(page)).to_have_text("103 states")


def test_mazes_can_be_chosen_made_sized_pasted_and_dropped(opened: Opens) -> None:
    page = opened()
    page.select_option("#builtin", "i-maze")
    expect(states(page)).to_have_text("19 states")
    page.fill("#rows", "20")
    page.locator("#rows").press("Enter")
    page.fill("#cols", "9")
    page.locator("#cols").press("Enter")
    expect(states(page)).to_have_text(f"{19 + 3 * 5 + 4 * 20} states, 2 components")
    page.select_option("#kind", "perfect")
    page.fill("#rows", "21")
    page.fill("#cols", "21")
    page.click("#dice")
    expect(states(page)).to_have_text("199 states")
    page.click("#paste")
    page.fill("#paste-text", "S..\n.?G")
    page.click("text=Use this maze")
    expect(page.locator("#paste-error")).to_contain_text("unknown character '?' at line 2 column 2")
    page.fill("#paste-text", "S..\n.#G")
    page.click("text=Use this maze")
    expect(states(page)).to_have_text("5 states")
    drop(page, "good.txt", "S.....G\n")
    expect(states(page)).to_have_text("7 states")


def test_a_bad_file_is_refused_in_one_line_and_nothing_changes(opened: Opens) -> None:
    page = opened()
    drop(page, "bad.txt", "S..\n.?G")
    expect(page.locator("#message")).to_contain_text("unknown character '?' at line 2 column 2")
    drop(page, "huge.txt", "." * 300_000)
    expect(page.locator("#message")).to_contain_text("too large")
    page.fill("#rows", "99")
    page.locator("#rows").press("Enter")
    expect(page.locator("#message")).to_contain_text("in 1..64")
    expect(states(page)).to_have_text("104 states")
    page.click("[data-tool=wall]")
    click(page, 1, 1)
    expect(page.locator("#message")).to_be_empty()


def test_a_link_brings_everything_back(opened: Opens) -> None:
    page = opened()
    page.click("[data-tool=wall]")
    click(page, 2, 2)
    page.click("[data-tool=goal]")
    click(page, 5, 5)
    expect(states(page)).to_have_text("103 states")
    page.select_option("#operator", "combinatorial")
    page.click("#gallery button >> nth=3")
    page.click("[data-sign='-']")
    page.click("#tab-take")
    expect(page.locator("#which")).to_have_text("e5−")
    link, shown, lines = page.url, option_on(page), page.inner_text("#python")
    other = opened(link[link.index("#") :])
    expect(other.locator("#which")).to_have_text("e5−")
    assert (option_on(other), other.inner_text("#python")) == (shown, lines)
    page.reload()
    expect(page.locator("#which")).to_have_text("e5−")
    assert option_on(page) == shown
    page.evaluate("location.hash = 'm=i-maze'")
    expect(states(page)).to_have_text("19 states")
    for bad, words in (
        ("m=13x13.AAAA..", "the link is incomplete"),
        ("m=999x999.A..", "999 × 999: at most 64 × 64"),
        ("m=nonsense", "contains no maze"),
        ("e=999&g=7&n=-1&o=x&t=__proto__", ""),
    ):
        other = opened(f"#{bad}")
        expect(states(other)).to_have_text("104 states")
        expect(other.locator("#message")).to_contain_text(words)


# Seeing


@pytest.mark.parametrize("operator", ["normalized", "combinatorial", "random-walk"])
def test_arrows_on_the_page_are_the_policy_of_the_library(opened: Opens, operator: str) -> None:
    page = opened()
    before = page.locator("html").get_attribute("data-ready")
    page.select_option("#operator", operator)
    expect(page.locator("html")).not_to_have_attribute("data-ready", before or "")
    mdp = eo.maze("four-rooms")
    options = eo.solve(mdp, eo.eigenpurposes(eo.spectrum(eo.graph(mdp), k=5, operator=operator)), 0.9)
    for index, sign in ((0, "+"), (2, "-"), (3, "+")):
        page.click(f"#gallery button >> nth={index}")
        page.click(f"[data-sign='{sign}']")
        option = options[2 * index + (sign == "-")]
        expect(page.locator("#which")).to_have_text(option.label.replace("-", "−"))
        assert option_on(page) == text_of(mdp, option.policy, (13, 13))
        assert f"{option.mean_length:.1f} steps" in page.inner_text("#caption")
        assert mdp.coords is not None
        stop = mdp.coords[option.termination][0]
        assert color(page, *stop) == [200, 16, 46]
        page.locator("#board").hover(position=cell(page, 11, 1))
        assert f"value {option.value[94]:.4f}" in page.inner_text("#readout")


def test_gamma_and_the_number_of_options_change_the_picture(opened: Opens) -> None:
    page = opened()
    mdp = eo.maze("four-rooms")
    page.fill("#gamma", "0.3")
    options = eo.discover(mdp, n_options=2, gamma=0.3)
    expect(page.locator("#astext")).to_have_text(
        text_of(mdp, options[0].policy, (13, 13)), use_inner_text=False
    )
    page.fill("#many", "48")
    expect(page.locator("#gallery button")).to_have_count(24)
    page.click("#more button")
    expect(page.locator("#gallery button")).to_have_count(40)


def test_an_option_runs_from_a_click_to_its_end(opened: Opens) -> None:
    mdp = eo.maze("four-rooms")
    option = eo.discover(mdp, n_options=2)[0]
    page = opened()
    assert mdp.coords is not None
    assert mdp.successors is not None
    s = mdp.goal
    assert s is not None
    click(page, *mdp.coords[s])
    steps = 0
    while option.act(s) >= 0:
        s, steps = int(mdp.successors[s, option.act(s)]), steps + 1
    row, col = mdp.coords[s]
    expect(page.locator("#board")).to_have_attribute("data-run", f"stopped at {13 * row + col} after {steps}")
    expect(page.locator("#readout")).to_contain_text(f"stopped after {steps} steps at ({row}, {col})")
    page.locator("#board").hover(position=cell(page, 11, 1))
    expect(page.locator("#readout")).to_contain_text("(11, 1) · state 94")
    click(page, row, col)
    expect(page.locator("#readout")).to_contain_text(f"may not start at ({row}, {col})")


def test_an_option_runs_step_by_step_where_motion_is_welcome(browser: Browser, address: str) -> None:
    context = browser.new_context(reduced_motion="no-preference")
    page = context.new_page()
    page.goto(address)
    page.wait_for_selector("html[data-ready]")
    page.evaluate("""window.said = [];
        new MutationObserver(() => said.push(document.getElementById("readout").textContent))
        .observe(document.getElementById("readout"), {childList: true})""")
    click(page, 1, 11)
    expect(page.locator("#board")).to_have_attribute("data-run", re.compile("stopped"))
    said = page.evaluate("said")
    total = int(re.search(r"stopped after (\d+) steps", said[-1])[1])  # type: ignore[index]
    steps = [words for words in dict.fromkeys(said) if words.startswith("step ")]
    assert [words for words in steps if words != f"step 0 of {total}"] == [
        f"step {i} of {total}" for i in range(1, total)
    ]
    context.close()


# Measuring, racing, learning, sampling


def test_measured_times_are_those_of_the_library(opened: Opens) -> None:
    page = opened("#t=measure")
    page.wait_for_selector("#measure[data-state=done]")
    mdp = eo.maze("four-rooms")
    with_options = diffusion_time(mdp, eo.discover(mdp, n_options=32))
    note = page.inner_text("#curve-note")
    assert f"Moves only: {diffusion_time(mdp):.0f} steps. With 32 eigenoptions: {with_options:.0f}" in note
    assert page.inner_text("#reach-1-mean") == f"{with_options:.0f} steps"
    assert page.locator("#curve path").count() > 3


def test_two_methods_stand_side_by_side(opened: Opens) -> None:
    page = opened("#t=compare&m=i-maze&n=4&c=0.1")
    page.select_option("#method-1", "covering")
    page.wait_for_selector("#compare[data-state=done]")
    mdp = eo.maze("i-maze")
    note = page.inner_text("#compare-note")
    for name, method in (("eigenoptions", "eigen"), ("covering", "covering")):
        time = diffusion_time(mdp, eo.discover(mdp, 4, method), option_chance=0.1)
        assert f"{name}: {time:.{0 if time >= 100 else 1}f} steps with 4 options" in note
    page.click("#method-1-list button >> nth=1")
    expect(page.locator("#method-1-note")).to_contain_text("may start in 18 of 19 cells and stops on 1,")


def test_other_components_are_not_drawn_as_stops(opened: Opens) -> None:
    page = opened(f"#m={linked('...#..')}&t=measure")
    expect(page.locator("#curve-note")).to_contain_text("2 components with no path between them")
    assert page.inner_text("#measure").count("…") == 0
    expect(page.locator("#caption")).to_contain_text("The other 2 cells belong to other components")
    assert option_on(page).endswith("█  ")


def test_a_newer_edit_cancels_what_was_asked_before(opened: Opens) -> None:
    page = opened(f"#t=measure&n=64&m={linked(rooms_map(2, 2, 11))}")
    page.wait_for_selector("#measure[data-state=running]")
    aborted: list[str] = []
    page.on("requestfailed", lambda r: aborted.append(f"{r.url} {r.failure}"))
    page.select_option("#builtin", "i-maze")
    page.wait_for_selector("#measure[data-state=done]")
    assert any("api/measure" in line and "ABORTED" in line for line in aborted)
    assert "Moves only: 246 steps" in page.inner_text("#curve-note")


def test_a_race_is_run_to_its_end(opened: Opens) -> None:
    page = opened("#t=race")
    page.wait_for_selector("#race[data-state=ready]")
    page.click("#race-go")
    page.wait_for_selector("#race[data-state=finished]")
    assert re.search(r"(won this race|No winner): .* steps", page.inner_text("#race-note"))
    assert "none of the 32 options stops at G" in page.inner_text("#race-why")
    for lane in (0, 1, 2):
        assert re.search(r"\d+ cells seen · expected [\d,]+", page.inner_text(f"#lane-{lane}-note"))
    page.select_option("#builtin", "open-room")
    page.wait_for_selector("#race[data-state=ready]")
    page.click("[data-tool=wall]")
    click(page, 10, 1)
    expect(page.locator("#race-note")).to_contain_text("no start (S)")
    expect(page.locator("#message")).to_contain_text("The start is gone")
    page.click("#tab-learn")
    expect(page.locator("#learn-go")).to_be_disabled()


def test_learning_curves_and_samples_arrive(opened: Opens) -> None:
    page = opened("#t=learn&m=i-maze&n=8")
    page.wait_for_selector("#learn[data-state=done]")
    expect(page.locator("#learn-note")).to_contain_text(
        "40 runs, at most 100 steps per episode; the shortest path has 16"
    )
    page.click("#tab-sample")
    page.wait_for_selector("#sample[data-state=done]")
    expect(page.locator("#sample-note")).to_contain_text("All transitions seen")
    assert [b.inner_text() for b in page.locator("#sampled b").all()] == ["100 %"] * 6


# Taking away


def test_the_lines_and_the_file_give_what_is_on_the_screen(opened: Opens, tmp_path: Path) -> None:
    page = opened("#n=8&o=random-walk&g=0.5&e=3-")
    page.click("[data-tool=wall]")
    click(page, 2, 3)
    expect(states(page)).to_have_text("103 states")
    page.click("#tab-take")
    lines = page.inner_text("#python")
    names: dict[str, Any] = {}
    here = Path.cwd()
    os.chdir(tmp_path)
    try:
        exec(compile(lines.replace("print(", "str("), "studio", "exec"), names)
    finally:
        os.chdir(here)
    options, mdp = names["options"], names["mdp"]
    assert (len(options), mdp.n_states) == (8, 103)
    assert option_on(page) == text_of(mdp, options[3].policy, (13, 13))
    with page.expect_download() as waiting:
        page.click("#save")
    waiting.value.save_as(tmp_path / "page.safetensors")
    found = eo.load_options(tmp_path / "page.safetensors", mdp)
    assert np.array_equal(found.policy, options.policy)
    assert page.inner_text("#command").startswith(
        "eigenoptions discover maze.txt -n 8 --gamma 0.5 --operator random-walk"
    )


def test_the_maze_can_be_downloaded(opened: Opens, tmp_path: Path) -> None:
    page = opened("#m=i-maze")
    begins = {"txt": b"#####\n#..G#", "svg": b"<svg xmlns=", "png": b"\x89PNG"}
    for kind, start in begins.items():
        page.click("summary:has-text('Download')")
        with page.expect_download() as waiting:
            page.click(f"[data-download={kind}]")
        file = tmp_path / waiting.value.suggested_filename
        waiting.value.save_as(file)
        assert file.name == f"i-maze.{kind}"
        assert file.read_bytes().startswith(start)
    assert eo.maze(tmp_path / "i-maze.txt").n_states == 19


def test_an_option_can_be_downloaded_as_a_film(opened: Opens, tmp_path: Path) -> None:
    from PIL import Image

    page = opened("#m=i-maze")
    page.click("summary:has-text('Download')")
    with page.expect_download() as waiting:
        page.click("[data-download=gif]")
    file = tmp_path / waiting.value.suggested_filename
    waiting.value.save_as(file)
    assert file.name == "i-maze-e2+.gif"
    mdp = eo.maze("i-maze")
    longest = int(lengths(mdp, eo.discover(mdp, 2)[0].policy).max())
    with Image.open(file) as film:
        assert (film.n_frames, film.info["loop"]) == (longest + 1, 0)
        film.seek(longest)
        shown = film.convert("RGB")
        assert max(film.size) == 480
        wall = shown.getpixel((5, 5))
        assert max(abs(a - b) for a, b in zip(wall, (74, 77, 84), strict=True)) < 8


def test_atari_results_can_be_browsed(opened: Opens) -> None:
    page = opened()
    page.click("#tab-atari")
    expect(page.locator("#game-view img")).to_have_count(1)
    assert page.evaluate("document.querySelector('#game-view img').decode().then(() => true)")
    expect(page.locator("#game-view")).to_contain_text("crosses")


# Security


@pytest.mark.parametrize(("size", "scheme"), [("phone", "light"), ("small", "dark"), ("desktop", "light")])
def test_every_view_fits_and_has_names(opened: Opens, size: str, scheme: str) -> None:
    page = opened("#m=i-maze&n=8", size, color_scheme=scheme)
    assert page.evaluate("document.documentElement.dataset.theme") == scheme
    for view in VIEWS:
        page.click(f"#tab-{view}")
        expect(page.locator(f"#{view}")).to_be_visible()
        assert page.evaluate("document.documentElement.scrollWidth") <= SIZES[size][0]
    nameless = page.evaluate("""[...document.querySelectorAll("button, input, select, textarea")].filter((e) =>
        !e.textContent.trim() && !e.getAttribute("aria-label") && !e.labels?.length).map((e) => e.outerHTML)""")
    assert nameless == []


def test_dark_and_light_can_be_switched_and_are_kept(opened: Opens) -> None:
    page = opened(color_scheme="light")
    page.click("#theme")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"
    page.reload()
    page.wait_for_selector("html[data-ready]")
    assert page.evaluate("document.documentElement.dataset.theme") == "dark"


def linked(text: str) -> str:
    """A map as the address writes it, by the rule of maze.js."""
    import base64

    rows = text.split("\n")
    free = [c != "#" for c in "".join(rows)]
    bits = np.packbits(free, bitorder="little").tobytes()
    return f"{len(rows)}x{len(rows[0])}.{base64.urlsafe_b64encode(bits).decode().rstrip('=')}.."


@pytest.mark.parametrize("side", [15, 50])
def test_every_edit_gives_a_new_picture(opened: Opens, side: int) -> None:
    page = opened(f"#m={linked(open_map(side, side))}&n=64")
    page.click("[data-tool=wall]")
    for i in range(4):
        before = page.locator("html").get_attribute("data-ready")
        click(page, 2 + 2 * i, 3)
        expect(page.locator("html")).not_to_have_attribute("data-ready", before or "")
        expect(states(page)).to_have_text(f"{side * side - 1 - i} states")
    assert page.locator("#gallery button").count() == 32
