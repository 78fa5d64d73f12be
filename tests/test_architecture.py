"""The shape of the house: who may import whom, one door for each heavy dependency, names that can be found.

The rows are those of ``docs/architecture.md``. Imports point down only; modules on one row are strangers.
"""

from __future__ import annotations

import ast
import doctest
import inspect
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

import eigenoptions

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "eigenoptions"

LAYERS = [  # from the ground up
    {"_kernels", "parallel", "files", "_sketch", "_registration"},
    {"mdp"},
    {"features"},
    {"spectra"},
    {"options"},
    {"evaluation", "learning", "envs", "atari", "deep"},
    {"discovery"},
    {"plots"},
    {"experiments"},
    {"studio"},
    {"cli"},
]
ROW = {module: i for i, layer in enumerate(LAYERS) for module in layer}

DOORS = {  # a heavy dependency, and the modules that may import it
    "numba": {"_kernels"},
    "gymnasium": {"envs", "_registration"},
    "minigrid": {"envs"},
    "stable_baselines3": {"envs"},
    "sb3_contrib": {"envs"},
    "ale_py": {"atari"},
    "torch": {"deep", "envs"},
    "ray": {"parallel"},
    "joblib": {"parallel"},
    "matplotlib": {"plots"},
    "mpl_toolkits": {"plots"},
    "PIL": {"plots"},
    "safetensors": {"files"},
    "starlette": {"studio"},
    "uvicorn": {"studio"},
    "tyro": {"cli"},
}
NOT_ON_IMPORT = ("torch", "ray", "matplotlib", "numba", "gymnasium", "tyro", "scipy")
NO_SUCH_ROOM = re.compile(r"_*(utils?|common|base|helpers?|misc)\d*")
MOST_LINES = 450


def home(path: Path, package: Path) -> str:
    """The module of the map that a file belongs to: ``_kernels/planning.py`` is part of ``_kernels``."""
    return path.relative_to(package).parts[0].removesuffix(".py")


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def walk(node: ast.AST, *, skip_type_checking: bool) -> Iterator[ast.AST]:
    """Every node, also inside functions; blocks under ``if TYPE_CHECKING`` only when asked for."""
    for child in ast.iter_child_nodes(node):
        if not (skip_type_checking and is_type_checking(child)):
            yield child
            yield from walk(child, skip_type_checking=skip_type_checking)


def imports(path: Path, *, skip_type_checking: bool) -> Iterator[tuple[int, str]]:
    """Line and dotted name of everything a file imports; a relative import starts with a dot."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in walk(tree, skip_type_checking=skip_type_checking):
        match node:
            case ast.Import(names=names):
                yield from ((node.lineno, name.name) for name in names)
            case ast.ImportFrom(module=module, names=names, level=level):
                yield from ((node.lineno, f"{'.' * level}{module or ''}.{name.name}") for name in names)
            case ast.Call(func=func, args=[ast.Constant(value=str(name)), *_]):
                if ast.unparse(func).split(".")[-1] in ("import_module", "__import__"):
                    yield node.lineno, name


def violations(package: Path) -> Iterator[str]:
    """One line for each import that breaks the map."""
    rooms = {home(path, package) for path in package.rglob("*.py")} - {"__init__"}
    yield from (f"{room} is not on the map: give it a row in LAYERS" for room in sorted(rooms - set(ROW)))
    for path in sorted(package.rglob("*.py")):
        me = home(path, package)
        front = path == package / "__init__.py"  # its block for type checkers lists the public names
        for line, name in imports(path, skip_type_checking=front):
            where = f"{path.relative_to(package)}:{line}"
            top, _, rest = name.partition(".")
            other = rest.split(".")[0]
            if name.startswith("."):
                yield f"{where}: relative import; write from eigenoptions.x import y"
            elif top in DOORS and me not in DOORS[top]:
                yield f"{where}: {me} may not import {top}: its door is {' or '.join(sorted(DOORS[top]))}"
            elif top != package.name or other == me or other == "__version__":
                continue
            elif other not in ROW:
                yield f"{where}: {me} imports the package itself; write from eigenoptions.x import y"
            elif ROW[other] >= ROW.get(me, 1 if front else -1):
                yield f"{where}: {me} may not import {other}: imports point down"


def test_imports_point_down_and_go_through_the_doors() -> None:
    assert list(violations(PACKAGE)) == []


@pytest.mark.parametrize(
    ("file", "text", "complaint"),
    [
        ("mdp.py", "from eigenoptions.options import solve", "mdp.py:1: mdp may not import options"),
        ("mdp.py", "def f():\n    from eigenoptions import plots", "mdp.py:2: mdp may not import plots"),
        ("mdp.py", "import eigenoptions.cli", "mdp.py:1: mdp may not import cli"),
        ("mdp.py", "import typing\nif typing.TYPE_CHECKING:\n    import torch", "mdp.py:3: mdp may not"),
        (
            "envs/__init__.py",
            "if TYPE_CHECKING:\n    from eigenoptions import plots",
            "envs may not import plots",
        ),
        ("learning.py", "from eigenoptions.evaluation import coverage", "learning may not import evaluation"),
        ("_sketch.py", "from eigenoptions.files import write", "_sketch may not import files"),
        (
            "experiments/figures.py",
            "import matplotlib.pyplot",
            "experiments may not import matplotlib: its door",
        ),
        ("experiments/figures.py", "from eigenoptions.cli import main", "experiments may not import cli"),
        ("options.py", "try:\n    import numba\nexcept ImportError:\n    pass", "its door is _kernels"),
        ("options.py", "from importlib import import_module\nimport_module('ray')", "its door is parallel"),
        ("cli.py", "import eigenoptions as eo", "imports the package itself"),
        ("cli.py", "from eigenoptions import discover", "imports the package itself"),
        ("options.py", "from .mdp import MDP", "options.py:1: relative import"),
        ("surprise.py", "", "surprise is not on the map"),
        ("__init__.py", "from eigenoptions.cli import main", "__init__ may not import cli"),
    ],
)
def test_a_planted_violation_is_caught(tmp_path: Path, file: str, text: str, complaint: str) -> None:
    planted = tmp_path / "eigenoptions" / file
    planted.parent.mkdir(parents=True)
    planted.write_text(text)
    (found,) = violations(tmp_path / "eigenoptions")
    assert complaint in found


def test_what_is_allowed_is_let_through(tmp_path: Path) -> None:
    package = tmp_path / "eigenoptions"
    (package / "_kernels").mkdir(parents=True)
    (package / "__init__.py").write_text("if TYPE_CHECKING:\n    from eigenoptions.mdp import MDP as MDP")
    (package / "_kernels" / "a.py").write_text("import numba\nfrom eigenoptions._kernels.b import f")
    (package / "mdp.py").write_text("import numpy\nfrom eigenoptions import __version__, _sketch")
    (package / "cli.py").write_text("import tyro\ndef f():\n    from eigenoptions.plots import draw")
    assert list(violations(package)) == []


def test_the_documents_show_the_same_map() -> None:
    text = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    (drawn,) = re.findall(r"```\{code-block\} text\n:name: rows\n\n(.*?)```", text, flags=re.DOTALL)
    assert [set(row.split()) for row in drawn.strip().splitlines()] == LAYERS[::-1]


def test_importing_the_package_is_light() -> None:
    code = "import sys, eigenoptions; dir(eigenoptions); print(*{name.split('.')[0] for name in sys.modules})"
    loaded = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    assert "eigenoptions" in loaded
    assert [name for name in NOT_ON_IMPORT if name in loaded] == []


def test_no_room_without_an_idea() -> None:
    files = [path.relative_to(PACKAGE).with_suffix("") for path in PACKAGE.rglob("*.py")]
    parts = {part for file in files for part in file.parts}
    assert [part for part in sorted(parts) if NO_SUCH_ROOM.fullmatch(part)] == []
    assert [word for word in ("_utils", "helper", "database", "mdp") if NO_SUCH_ROOM.fullmatch(word)] == [
        "_utils",
        "helper",
    ]


def test_files_hold_one_idea() -> None:
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in PACKAGE.rglob("*.py")}
    assert {path.name: n for path, n in lines.items() if n > MOST_LINES} == {}


def promised() -> dict[str, str]:
    """Public names and their modules, as type checkers see them in ``__init__``."""
    tree = ast.parse((PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if is_type_checking(node))
    assert isinstance(block, ast.If)
    found = {}
    for node in block.body:
        assert isinstance(node, ast.ImportFrom)
        for name in node.names:
            assert name.asname == name.name, f"write {name.name} as {name.name}: type checkers then export it"
            found[name.name] = str(node.module)
    return found


def test_public_names_are_the_same_for_people_and_type_checkers() -> None:
    names = promised()
    assert sorted(names) == sorted(eigenoptions.__all__)
    assert len(set(eigenoptions.__all__)) == len(eigenoptions.__all__)
    for name, module in names.items():
        assert getattr(eigenoptions, name) is getattr(import_module(module), name)
    with pytest.raises(AttributeError, match="no attribute 'no_such_name'"):
        _ = eigenoptions.no_such_name


@pytest.mark.parametrize("name", eigenoptions.__all__)
def test_public_names_explain_themselves(name: str) -> None:
    value = getattr(eigenoptions, name)
    if not callable(value):  # a constant has no docstring of its own; docs/api.md says what it means
        return
    doc = inspect.getdoc(value) or ""
    assert doctest.DocTestParser().get_examples(doc), f"{name} needs a docstring with one example (>>>)"


@pytest.mark.parametrize("name", eigenoptions.__all__)
def test_public_names_are_in_the_reference(name: str) -> None:
    text = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    assert re.search(rf"^\.\. (auto\w+|py:data):: eigenoptions\.{name}$", text, flags=re.MULTILINE), (
        f"add {name} to docs/api.md"
    )


def test_every_module_says_its_job() -> None:
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.py")}
    assert [path.name for path, tree in trees.items() if not ast.get_docstring(tree)] == []
