"""The documentation builds without a warning, cannot forget a public name, and its examples are true."""

from __future__ import annotations

import doctest
import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

import pytest

import eigenoptions
from eigenoptions.cli import main, make_parser

ROOT = Path(__file__).parent.parent
# Pages of the gallery and of notebooks are generated; test_examples.py and test_notebooks.py run what they show.
PAGES = sorted(
    page.relative_to(ROOT).as_posix()
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md"), *ROOT.glob("docs/reference/*.md")]
)
# Blocks of these kinds are run or read by a test, or hold no code; MyST's directives have braces.
KINDS = re.compile(r"python|console|json|text|\{[\w-]+\}.*")
# Commands of other programs on the pages, which no test runs: installation, and the start of a Ray cluster.
NOT_RUN = ("pip install", "ray start", "export RAY_", "(umask 077; python -c")


def build(docs: Path, out: Path) -> subprocess.CompletedProcess[str]:
    flags = ["-W", "--keep-going", "-q", "-d", str(out / "doctrees")]
    command = [sys.executable, "-m", "sphinx", *flags, str(docs), str(out / "html")]
    return subprocess.run(command, capture_output=True, encoding="utf-8", timeout=300)


def test_the_documents_build_and_need_nothing_from_outside(tmp_path: Path) -> None:
    done = build(ROOT / "docs", tmp_path)
    assert (done.returncode, done.stderr) == (0, "")
    reference = (tmp_path / "html" / "api.html").read_text(encoding="utf-8")
    assert 'id="eigenoptions.discover"' in reference
    assert broken_links(tmp_path / "html") == []
    for page in (tmp_path / "html").rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        remote = re.findall(r"<(?:script|link|img)[^>]+(?:src|href)=\"(?:\w+:)?//[^>]*>", text)
        assert remote == [], page.name


class Links(HTMLParser):
    """Addresses and anchors of a page."""

    def __init__(self, page: Path) -> None:
        super().__init__()
        self.addresses: set[str] = set()
        self.anchors: set[str] = set()
        self.feed(page.read_text(encoding="utf-8"))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if value and name in ("href", "src"):
                self.addresses.add(value)
            elif value and name in ("id", "name"):
                self.anchors.add(value)


def broken_links(site: Path) -> list[str]:
    """Links of a built site that lead to no file or no anchor in it; of other hosts only the form is looked at."""
    pages = {page.resolve(): Links(page) for page in site.rglob("*.html")}
    found = []
    for page, links in pages.items():
        for address in sorted(links.addresses):
            parts = urlsplit(address)
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            anchor = unquote(parts.fragment)
            if parts.scheme in ("http", "https"):
                right = re.fullmatch(r"[\w-]+(\.[\w-]+)+(:\d+)?", parts.netloc) is not None
            elif parts.scheme:
                right = parts.scheme in ("data", "mailto", "javascript")
            else:
                # The scripts of the studio read what follows # themselves.
                own = target not in pages or "try" in target.relative_to(site.resolve()).parts
                right = target.exists() and (not anchor or own or anchor in pages[target].anchors)
            if not right:
                found.append(f"{page.relative_to(site.resolve())}: {address}")
    return found


def test_the_link_check_can_fail(tmp_path: Path) -> None:
    (tmp_path / "a.html").write_text('<a href="b.html#here">x</a> <a href="#top">x</a> <p id="top">')
    (tmp_path / "b.html").write_text('<p id="here"> <a href="https://arxiv.org/abs/1703.00956">x</a>')
    assert broken_links(tmp_path) == []
    (tmp_path / "c.html").write_text(
        '<a href="b.html#gone">x</a> <img src="d.png"> <a href="https://nohost/">x</a>'
    )
    assert broken_links(tmp_path) == ["c.html: b.html#gone", "c.html: d.png", "c.html: https://nohost/"]


# Names that no page explains, each in its own way, with what the reference has to say of them.
NEWCOMERS = {
    "not_listed": ("def not_listed(): pass", ""),
    "no_docstring": ("def no_docstring(): pass", ".. autofunction:: eigenoptions.no_docstring"),
    "Holder.method": (
        'class Holder:\n    """Documented."""\n    def method(self): pass',
        ".. autoclass:: eigenoptions.Holder\n   :members:",
    ),
    "Record.size": (
        'import dataclasses as d\n\n@d.dataclass\nclass Record:\n    """Words."""\n    size: int = 0',
        ".. autoclass:: eigenoptions.Record",
    ),
}


def test_names_without_words_fail_the_build(tmp_path: Path) -> None:
    """With the extension that fails it, and a reference of few names."""
    assert '"public_names"' in (ROOT / "docs" / "conf.py").read_text(encoding="utf-8")
    code = f"import sys\nsys.path.insert(0, {str(ROOT / 'docs' / 'ext')!r})\n"
    code += "import eigenoptions, public_names\n"
    code += 'extensions = ["myst_parser", "sphinx.ext.autodoc", "public_names"]\n'
    code += 'public_names.MODULES, eigenoptions.__all__ = ("features",), ["TERMINATE", "maze", "solve"]\n'
    entries = [".. py:data:: eigenoptions.TERMINATE", ".. autofunction:: eigenoptions.maze"]
    entries.append(".. automodule:: eigenoptions.features\n   :members:\n   :exclude-members: Raw")
    for missing, (newcomer, entry) in NEWCOMERS.items():
        name = missing.split(".")[0]
        code += f"\n{newcomer}\neigenoptions.{name} = {name}\neigenoptions.__all__.append({name!r})\n"
        entries.append(entry)
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "conf.py").write_text(code, encoding="utf-8")
    page = "# Reference\n\n```{eval-rst}\n" + "\n\n".join(entries) + "\n```\n"
    (docs / "index.md").write_text(page, encoding="utf-8")
    done = build(docs, tmp_path)
    assert done.returncode != 0
    missing = ", ".join(["solve", *NEWCOMERS, "features.Raw"])
    assert f"public names without documentation: {missing}; see docs/api.md" in done.stderr


def fences(page: str, language: str) -> list[str]:
    text = (ROOT / page).read_text(encoding="utf-8")
    return re.findall(rf"^```{language}\n(.*?)^```", text, flags=re.MULTILINE | re.DOTALL)


# Calls that take half a minute as the page has them, and the same calls with less to do.
SMALLER = {
    "docs/atari.md": {
        'find_starts("Freeway")': 'find_starts("Freeway", bursts=40)',
        'collect("Freeway", starts))': 'collect("Freeway", starts, 2000, longest=500), sample=2000)',
    }
}


@pytest.mark.parametrize("page", [page for page in PAGES if fences(page, "python")])
def test_python_on_the_page_is_true(page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {}
    blocks = fences(page, "python")
    for call, smaller in SMALLER.get(page, {}).items():
        assert any(call in block for block in blocks), call
        blocks = [block.replace(call, smaller) for block in blocks]
    for block in blocks:
        if ">>>" in block:
            test = doctest.DocTestParser().get_doctest(block, names, page, page, 0)
            said: list[str] = []
            result = doctest.DocTestRunner().run(test, out=said.append, clear_globs=False)
            assert result.failed == 0, "".join(said)
            names = test.globs
        else:
            exec(compile(block, page, "exec"), names)


@pytest.mark.parametrize("page", PAGES)
def test_every_block_of_a_page_is_of_a_kind_that_is_tested(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    opened = re.findall(r"^ *```+(.*)$", text, flags=re.MULTILINE)[::2]
    assert [kind for kind in opened if not KINDS.fullmatch(kind)] == []
    assert [block for block in fences(page, "text") if "eo." in block] == []
    for block in fences(page, "json"):
        json.loads(block)
    for line in "".join(fences(page, "console")).splitlines():
        words = line.removeprefix("$ ")
        script = re.match(r"python (\S+\.py)", words)
        assert line.startswith("$ "), line
        assert words.startswith(("eigenoptions ", "make", *NOT_RUN)) or (
            script and (ROOT / script[1]).is_file()
        ), line


# Commands that run for minutes or until they are stopped, with tests of their own; here their arguments are read.
LONG = ("arena", "atari", "reproduce", "studio")


def typed(page: str, program: str) -> list[list[str]]:
    """Words that the page says to type after a program, without comments."""
    found = re.findall(rf"^\$ {program}\b(.*)$", "".join(fences(page, "console")), flags=re.MULTILINE)
    return [shlex.split(line, comments=True) for line in found]


def commands(page: str) -> list[list[str]]:
    """What the page says to type, after ``eigenoptions``."""
    return [words for words in typed(page, "eigenoptions") if words[0] not in LONG]


@pytest.mark.parametrize("page", [page for page in PAGES if typed(page, "eigenoptions")])
def test_long_commands_on_the_page_have_the_right_arguments(page: str) -> None:
    for name, *args in typed(page, "eigenoptions"):
        if name in LONG:
            make_parser(name).parse_args(args)


@pytest.mark.parametrize("page", [page for page in PAGES if typed(page, "make")])
def test_targets_on_the_page_exist(page: str) -> None:
    targets = re.findall(
        r"^([\w-]+):.*##", (ROOT / "Makefile").read_text(encoding="utf-8"), flags=re.MULTILINE
    )
    assert [words[0] for words in typed(page, "make") if words and words[0] not in targets] == []


def test_the_readme_is_short_and_its_numbers_are_true() -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) < 150
    rooms = eigenoptions.maze("four-rooms")
    options = eigenoptions.discover(rooms, n_options=64)
    learned = [
        eigenoptions.q_learning(rooms, chosen, runs=100, episodes=500, rng=0).returns.mean()
        for chosen in (None, options[:4])
    ]
    few = eigenoptions.diffusion_time(rooms, options[:4], option_chance=0.05)
    primitive = eigenoptions.diffusion_time(rooms)
    assert f"4 eigenoptions to explore | {learned[0]:.2f} | {learned[1]:.2f} |" in text
    assert f"with probability 0.05 | {primitive:.0f} | {few:.0f} |" in text
    assert f"# {primitive:.1f} and {eigenoptions.diffusion_time(rooms, options):.1f} steps" in text
    assert f"a diffusion time of {eigenoptions.diffusion_time(rooms, options[:4]):,.0f} under uniform" in text


@pytest.mark.parametrize("page", [page for page in PAGES if commands(page)])
def test_commands_on_the_page_work(
    page: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    for words in commands(page):
        assert main(words) == 0, f"eigenoptions {shlex.join(words)}: {capsys.readouterr().err}"


@pytest.mark.parametrize("page", PAGES)
def test_links_between_files_lead_somewhere(page: str) -> None:
    text = (ROOT / page).read_text(encoding="utf-8")
    # Pages that the build writes are not there in a fresh copy; the check of the built site follows links to them.
    targets = re.findall(r"\]\((?!\w+:|(?:\.\./)?(?:gallery|notebooks)/)([^)#\s]+)", text)
    assert [target for target in targets if not ((ROOT / page).parent / target).exists()] == []


def test_the_version_is_the_same_everywhere() -> None:
    whole = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert whole["project"]["dynamic"] == ["version"]
    # The one place: the build reads it there.
    source = ROOT / whole["tool"]["hatch"]["version"]["path"]
    assert f'\n__version__ = "{eigenoptions.__version__}"\n' in source.read_text(encoding="utf-8")
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {eigenoptions.__version__}\n" in citation


@pytest.mark.parametrize("target", ["reproduce", "test"])
def test_the_two_commands_exist_and_help_names_them(target: str) -> None:
    # As from a shell: a make that runs these tests must not pass its own flags and targets on.
    env = {key: value for key, value in os.environ.items() if not key.startswith("MAKE") and key != "MFLAGS"}
    said = subprocess.run(["make"], cwd=ROOT, env=env, capture_output=True, text=True, check=True).stdout
    assert re.search(rf"^  make {target} +\w", said, flags=re.MULTILINE)
    subprocess.run(["make", "-n", target], cwd=ROOT, env=env, capture_output=True, check=True)
