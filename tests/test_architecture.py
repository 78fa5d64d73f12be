"""The architecture: who may import whom, and a first call that compiles nothing.

Every heavy dependency has one owner.
"""

from __future__ import annotations

import ast
import doctest
import inspect
import re
import subprocess
import sys
from collections.abc import Collection, Iterator
from graphlib import TopologicalSorter
from importlib import import_module
from pathlib import Path

import pytest

import eigenoptions

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "eigenoptions"
# Imports point down only, and entries of one row do not import each other.
ROWS = [
    # The faces.
    ["cli"],
    ["studio"],
    ["plots"],
    # The rooms: each imports the core, and only rooms below it.
    ["agents"],
    ["deep", "atari"],
    ["explore"],
    ["vectors"],
    ["samples"],
    # The core.
    ["discovery"],
    ["evaluation", "learning", "envs"],
    ["options"],
    ["spectra"],
    ["mdp"],
    # Private, used everywhere.
    ["_kernels", "parallel"],
    ["_text"],
    ["_colors"],
    ["_registry", "_notes"],
    ["_validation", "_ties", "_splitmix", "_progress"],
    ["_types"],
]
# What the core returns and a room defines: imports for types only, which nobody runs.
RETURNED = {
    ("discovery/discover.py", "samples"),
    ("discovery/sources.py", "samples"),
    ("options/storage.py", "samples"),
}
LAYER = {name: layer for layer, row in enumerate(reversed(ROWS)) for name in row}
# A heavy dependency, and the entries that may import it.
OWNERS = {
    "numba": {"_kernels"},
    "gymnasium": {"envs", "samples", "explore", "agents", "__init__"},
    "minigrid": {"envs"},
    "stable_baselines3": {"agents"},
    "sb3_contrib": {"agents"},
    "ale_py": {"atari"},
    "torch": {"deep", "agents"},
    "ray": {"parallel"},
    "joblib": {"parallel"},
    "matplotlib": {"plots"},
    "safetensors": {"options"},
    "pandas": set(),
    "jinja2": set(),
    "reproduction": set(),
    "studies": set(),
}


def find_imports(path: Path) -> Iterator[tuple[int, str]]:
    """Line and dotted name of everything that a file imports, also inside functions."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield from (
                (node.lineno, f"{'.' * node.level}{node.module or ''}.{a.name}")
                for a in node.names
            )


def find_violations(
    package: Path, returned: Collection[tuple[str, str]] = ()
) -> Iterator[str]:
    """One line for each import that breaks the layers, without those of `returned`."""
    for path in sorted(package.rglob("*.py")):
        entry = path.relative_to(package).parts[0].removesuffix(".py")
        for line, name in find_imports(path):
            top, _, rest = name.partition(".")
            other = rest.split(".")[0]
            where = f"{path.relative_to(package)}:{line}"
            if name.startswith("."):
                yield f"{where}: relative import"
            elif top in OWNERS and entry not in OWNERS[top]:
                yield f"{where}: {entry} may not import {top}"
            elif name == "eigenoptions":
                # The package itself, which loads every public name when it is used.
                if entry != "cli":
                    yield f"{where}: {entry} may not import the whole package"
            elif top == "eigenoptions" and other != "__version__":
                file = path.relative_to(package).as_posix()
                if (file, other) in returned:
                    continue
                allowed = entry in ("__init__", "__main__", other) or LAYER.get(
                    other, 99
                ) < LAYER.get(entry, -1)
                if not allowed:
                    yield f"{where}: {entry} may not import {other}: imports point down"


def test_imports_point_down_and_dependencies_have_one_owner() -> None:
    assert list(find_violations(PACKAGE, RETURNED)) == []


def test_what_the_core_returns_is_imported_for_types_only() -> None:
    for file, other in RETURNED:
        tree = ast.parse((PACKAGE / file).read_text(encoding="utf-8"))
        for_types = set()
        for node in tree.body:
            if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
                for_types |= {inner.lineno for inner in node.body}
        upward = {
            line
            for line, name in find_imports(PACKAGE / file)
            if name.startswith(f"eigenoptions.{other}.")
        }
        assert upward
        assert upward <= for_types


@pytest.mark.parametrize(
    ("file", "text"),
    [
        ("mdp.py", "def f():\n    from eigenoptions import plots"),
        ("learning.py", "from eigenoptions.evaluation import hitting_times"),
        ("options.py", "import numba"),
        ("envs/a.py", "from reproduction.lab import Lab"),
        ("options.py", "from .mdp import MDP"),
        ("surprise.py", "import eigenoptions.mdp"),
        ("studio.py", "import eigenoptions as eo"),
    ],
)
def test_planted_violation_is_found(tmp_path: Path, file: str, text: str) -> None:
    planted = tmp_path / "eigenoptions" / file
    planted.parent.mkdir(parents=True)
    planted.write_text(text)
    assert len(list(find_violations(tmp_path / "eigenoptions"))) == 1


# The only files that import modules by name: the lazy root, the registry that lower
# layers read and upper layers fill, and the command line, which lists its folder.
IMPORTERS = {"__init__.py", "_registry.py", "cli/program.py"}


def test_no_module_is_imported_by_its_name_elsewhere() -> None:
    importers = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if "import_module(" in path.read_text(encoding="utf-8")
    }
    assert importers == IMPORTERS


def is_reexport(node: ast.stmt) -> bool:
    """Whether a statement is an import, a docstring, or the list of public names."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return True
    if isinstance(node, ast.Assign):
        return ast.unparse(node.targets[0]) == "__all__"
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def test_init_files_only_re_export() -> None:
    for path in sorted(PACKAGE.rglob("__init__.py")):
        if path.parent != PACKAGE:
            body = ast.parse(path.read_text(encoding="utf-8")).body
            assert all(is_reexport(node) for node in body), path


def test_modules_have_no_import_cycle() -> None:
    modules = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE.parent).with_suffix("").parts
        modules[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    graph: dict[str, set[str]] = {}
    for name, path in modules.items():
        targets = {t for _, t in find_imports(path)} | {
            t.rpartition(".")[0] for _, t in find_imports(path)
        }
        graph[name] = (
            (targets & modules.keys()) - {name, "eigenoptions"}
            if name != "eigenoptions"
            else set()
        )
        # A package and the modules inside it may know each other.
        graph[name] -= {
            target for target in graph[name] if name.startswith(f"{target}.")
        }
    TopologicalSorter(graph).prepare()


def run_python(code: str, *flags: str) -> list[str]:
    command = [sys.executable, *flags, "-c", code]
    return subprocess.check_output(command, text=True).split()


@pytest.mark.parametrize(
    "lines",
    [
        "from eigenoptions.explore import Found; import eigenoptions as eo",
        "import eigenoptions as eo; eo.explore; from eigenoptions.explore import Found",
        "import eigenoptions.explore.found; import eigenoptions as eo",
        "import eigenoptions as eo; eo.Exploring",
    ],
)
def test_explore_is_a_function_beside_the_folder_of_its_name(lines: str) -> None:
    found = run_python(
        f"{lines}; print(eo.explore('eigenoptions/IMaze-v0', 5).n_steps)", "-W", "error"
    )
    assert found == ["5"]


ROOMS = {"samples", "vectors", "explore", "deep", "atari", "agents", "plots", "cli"}


@pytest.mark.parametrize(
    ("line", "rooms"),
    [
        ("eo.discover('four-rooms', 4)", set()),
        ("eo.discover('FrozenLake-v1', 4)", set()),
        ("eo.diffusion_time(eo.maze('i-maze'))", set()),
        ("eo.OptionsWrapper(env, eo.discover('i-maze', 2)).reset(seed=0)", set()),
        ("eo.explore(env, 9)", {"explore", "samples"}),
        ("eo.collect(env, 9)", {"samples"}),
        ("eo.Planner", {"vectors", "samples"}),
    ],
)
def test_a_room_loads_no_other(line: str, rooms: set[str]) -> None:
    loaded = run_python(
        "import sys, eigenoptions as eo; env = eo.envs.MazeEnv('i-maze'); "
        f"{line}; print(*sys.modules)"
    )
    entries = {
        name.split(".")[1] for name in loaded if name.startswith("eigenoptions.")
    }
    assert entries & ROOMS == rooms


def test_import_is_light() -> None:
    loaded = run_python(
        "import sys, eigenoptions; dir(eigenoptions); "
        "print(*{name.split('.')[0] for name in sys.modules})"
    )
    assert not {"torch", "ray", "matplotlib", "numba", "scipy", "joblib"} & set(loaded)


def test_nothing_is_compiled_for_small_problems() -> None:
    code = """
import sys, gymnasium, eigenoptions as eo
from eigenoptions.cli import main
for name in ("four-rooms", "rooms:4x4"):
    mdp = eo.maze(name)
    options = eo.solve(mdp, eo.eigenpurposes(eo.spectrum(eo.graph(mdp), k=9)))
    options = eo.discover(mdp, 8)
    if mdp.n_states < 200:
        eo.diffusion_time(mdp, options)
        eo.diffusion_curve(mdp, options)
        eo.best_option_chance(mdp, options)
        eo.OptionsWrapper(gymnasium.make('eigenoptions/FourRooms-v0'), options)
assert 1500 < mdp.n_states <= 2000
for line in ("demo", "discover four-rooms -n 8", "diffusion four-rooms -n 8"):
    assert main(line.split()) == 0
print("numba" in sys.modules)
"""
    assert run_python(code)[-1] == "False"


def test_discover_crosses_few_functions_and_files() -> None:
    mdp = eigenoptions.maze("four-rooms")
    eigenoptions.discover(mdp, 8)
    crossed = set()

    def record(frame, event, _):  # type: ignore[no-untyped-def]
        code = frame.f_code
        inside = Path(code.co_filename).is_relative_to(
            PACKAGE
        ) and not code.co_name.startswith("<")
        if event == "call" and inside:
            crossed.add((Path(code.co_filename), code.co_name, code.co_firstlineno))

    sys.setprofile(record)
    eigenoptions.discover(mdp, 8)
    sys.setprofile(None)
    assert len(crossed) <= 90, sorted((file.name, name) for file, name, _ in crossed)
    assert len({file for file, _, _ in crossed}) <= 19


def test_public_names_are_the_same_for_people_and_type_checkers() -> None:
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    blocks = [
        n
        for n in tree.body
        if isinstance(n, ast.If) and "TYPE_CHECKING" in ast.unparse(n.test)
    ]
    promised = {
        a.name: str(n.module)
        for n in ast.walk(blocks[0])
        if isinstance(n, ast.ImportFrom)
        for a in n.names
    }
    assert sorted(promised) == sorted(eigenoptions.__all__)
    for name, module in promised.items():
        assert getattr(eigenoptions, name) is getattr(import_module(module), name)
    with pytest.raises(AttributeError, match="no_such_name"):
        _ = eigenoptions.no_such_name


@pytest.mark.parametrize("name", eigenoptions.__all__)
def test_public_name_has_an_example_and_an_entry_in_the_reference(name: str) -> None:
    value = getattr(eigenoptions, name)
    if callable(value):
        assert doctest.DocTestParser().get_examples(inspect.getdoc(value) or ""), (
            f"{name} needs an example"
        )
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    assert re.search(
        rf"^\.\. (auto\w+|py:data):: eigenoptions\.{name}$", text, flags=re.MULTILINE
    )


def test_no_control_flow_on_the_text_of_an_exception() -> None:
    found = []
    for path in PACKAGE.rglob("*.py"):
        for handler in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(handler, ast.ExceptHandler) and handler.name:
                tests = [
                    ast.unparse(n)
                    for n in ast.walk(handler)
                    if isinstance(n, ast.Compare)
                ]
                found += [
                    f"{path.name}: {text}"
                    for text in tests
                    if f"str({handler.name})" in text
                ]
    assert found == []


CORE = {"mdp", "spectra", "options", "discovery", "evaluation", "learning", "envs"}


def read_evening() -> dict[str, int]:
    """The files of the core that one reads in an evening, and their statements."""
    page = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([\w/]+\.py)` \| (\d+) \|", page, flags=re.MULTILINE)
    return {file: int(n_statements) for file, n_statements in rows}


def count_statements(path: Path) -> int:
    """Statements of a file without imports and docstrings."""
    nodes = ast.walk(ast.parse(path.read_text(encoding="utf-8")))
    statements = [node for node in nodes if isinstance(node, ast.stmt)]
    return sum(
        not isinstance(node, ast.Import | ast.ImportFrom)
        and not (isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant))
        for node in statements
    )


def test_the_evening_imports_nothing_from_a_room() -> None:
    evening = read_evening()
    assert len(evening) >= 30
    for file, n_statements in evening.items():
        path = PACKAGE / file
        imported = {
            name.split(".")[1].removesuffix(".py")
            for _, name in find_imports(path)
            if name.startswith("eigenoptions.")
        }
        allowed = {entry for entry in imported if entry.startswith("_")} | CORE
        rooms = {other for place, other in RETURNED if place == file}
        assert imported <= allowed | rooms | {"parallel"}, file
        # The page says how long the evening is, to a tenth.
        assert abs(count_statements(path) - n_statements) <= 5 + n_statements / 10, file


def test_a_maze_is_discovered_measured_learned_and_run_in_the_evening_alone() -> None:
    code = """
import sys, gymnasium, eigenoptions as eo
from pathlib import Path
package = Path(eo.__file__).parent
def work():
    rooms = eo.maze("four-rooms")
    options = eo.discover(rooms, 8)
    eo.diffusion_time(rooms, options)
    eo.q_learning(rooms, options, runs=1, episodes=2)
    env = eo.OptionsWrapper(gymnasium.make("eigenoptions/FourRooms-v0"), options)
    env.reset(seed=0)
    env.step(4)
def record(frame, event, _):
    path = Path(frame.f_code.co_filename)
    if event == "call" and path.is_relative_to(package):
        crossed.add(path.relative_to(package).as_posix())
# What modules do when they are imported is no part of it.
work()
crossed = set()
sys.setprofile(record)
work()
sys.setprofile(None)
print(*crossed)
"""
    crossed = {file for file in run_python(code) if not file.startswith("_")}
    assert crossed == set(read_evening())
