"""The architecture: who may import whom, one owner per heavy dependency, limits that keep files readable.

The layers are read from the drawings in ``docs/architecture.md`` and ``CONTRIBUTING.md``. Imports point down only, and
modules of one row do not import each other.
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
from docs.import_graph import PACKAGE, cycle, entry, imports, is_type_checking, module_graph, modules

import eigenoptions

ROOT = Path(__file__).parent.parent


def drawing(text: str) -> list[list[str]]:
    """Rows of the first drawing of the layers in a document, from the top; what follows a name in a row is prose."""
    (drawn,) = re.findall(r"```\S* ?text\n(?::name: rows\n\n)?(cli\b.*?)```", text, flags=re.DOTALL)
    rows = [re.split(r"\s{3,}", line.strip())[0].split() for line in drawn.strip().splitlines()]
    return [row for row in rows if row]


ROWS = drawing((ROOT / "docs" / "architecture.md").read_text(encoding="utf-8"))
LAYER = {name: i for i, row in enumerate(reversed(ROWS)) for name in row}

# A heavy dependency, and the entries that may import it.
OWNERS = {
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
NAMES_WITHOUT_MEANING = re.compile(r"_*(utils?|common|base|helpers?|misc)\d*")
MAX_LINES_PER_FILE = 500
MAX_LINES_PER_BODY = 60
MAX_PARAMETERS = 8
MAX_TOP_LEVEL_ENTRIES = 18
NOT_COUNTED = {"__init__", "__main__", "_registration", "_text"}
MAX_MODULES_OF_A_FIRST_CALL = 15


def violations(package: Path) -> Iterator[str]:
    """One line for each import that breaks the layers."""
    found = {entry(path, package) for path in package.rglob("*.py")} - {"__init__", "__main__"}
    yield from (
        f"{name} has no layer: draw it in docs/architecture.md" for name in sorted(found - set(LAYER))
    )
    for path in sorted(package.rglob("*.py")):
        me = entry(path, package)
        # The block for type checkers in the package's own file lists the public names.
        front = path == package / "__init__.py"
        for line, name in imports(path, skip_type_checking=front):
            where = f"{path.relative_to(package)}:{line}"
            top, _, rest = name.partition(".")
            other = rest.split(".")[0]
            if name.startswith("."):
                yield f"{where}: relative import; write from eigenoptions.x import y"
            elif top in OWNERS and me not in OWNERS[top]:
                yield f"{where}: {me} may not import {top}: its owner is {' or '.join(sorted(OWNERS[top]))}"
            elif top != package.name or other == me or other == "__version__":
                continue
            elif other not in LAYER:
                yield f"{where}: {me} imports the package itself; write from eigenoptions.x import y"
            elif LAYER[other] >= LAYER.get(
                me, LAYER["mdp"] if front else len(ROWS) if me == "__main__" else -1
            ):
                yield f"{where}: {me} may not import {other}: imports point down"


def test_imports_point_down_and_dependencies_have_one_owner() -> None:
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
        ("_text.py", "from eigenoptions.files import write", "_text may not import files"),
        (
            "experiments/figures.py",
            "import matplotlib.pyplot",
            "experiments may not import matplotlib: its owner",
        ),
        ("experiments/figures.py", "from eigenoptions.cli import main", "experiments may not import cli"),
        ("options.py", "try:\n    import numba\nexcept ImportError:\n    pass", "its owner is _kernels"),
        ("options.py", "from importlib import import_module\nimport_module('ray')", "its owner is parallel"),
        ("cli.py", "import eigenoptions as eo", "imports the package itself"),
        ("cli.py", "from eigenoptions import discover", "imports the package itself"),
        ("options.py", "from .mdp import MDP", "options.py:1: relative import"),
        ("surprise.py", "", "surprise has no layer"),
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
    (package / "mdp.py").write_text("import numpy\nfrom eigenoptions import __version__, _text")
    (package / "cli.py").write_text("import tyro\ndef f():\n    from eigenoptions.plots import draw")
    assert list(violations(package)) == []


def test_the_documents_draw_the_same_layers() -> None:
    text = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    assert [set(row) for row in drawing(text)] == [set(row) for row in ROWS]


def test_importing_the_package_is_light() -> None:
    code = "import sys, eigenoptions; dir(eigenoptions); print(*{name.split('.')[0] for name in sys.modules})"
    loaded = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    assert "eigenoptions" in loaded
    assert [name for name in NOT_ON_IMPORT if name in loaded] == []


def test_names_say_something() -> None:
    parts = {part for name in modules() for part in name.split(".")}
    assert [part for part in sorted(parts) if NAMES_WITHOUT_MEANING.fullmatch(part)] == []
    words = ("_utils", "helper", "database", "mdp")
    assert [word for word in words if NAMES_WITHOUT_MEANING.fullmatch(word)] == ["_utils", "helper"]


def test_the_top_level_stays_small() -> None:
    found = {entry(path) for path in PACKAGE.rglob("*.py")} - NOT_COUNTED
    assert len(found) <= MAX_TOP_LEVEL_ENTRIES, sorted(found)


def test_files_stay_readable() -> None:
    lines = {path: len(path.read_text(encoding="utf-8").splitlines()) for path in PACKAGE.rglob("*.py")}
    assert {path.name: n for path, n in lines.items() if n > MAX_LINES_PER_FILE} == {}


def body_lines(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Lines of a function's body without its docstring."""
    body = node.body[1:] if ast.get_docstring(node) is not None else node.body
    return (body[-1].end_lineno or 0) - body[0].lineno + 1 if body else 0


def parameters(node: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    names = [arg.arg for arg in (*node.args.posonlyargs, *node.args.args, *node.args.kwonlyargs)]
    return len([name for name in names if name not in ("self", "cls")])


def test_functions_stay_short() -> None:
    long, wide = [], []
    for name, path in modules().items():
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                if body_lines(node) > MAX_LINES_PER_BODY:
                    long.append(f"{name}.{node.name}: {body_lines(node)} lines")
                public = not node.name.startswith("_") and "._kernels" not in name
                if public and parameters(node) > MAX_PARAMETERS:
                    wide.append(f"{name}.{node.name}: {parameters(node)} parameters")
    assert (long, wide) == ([], [])


def test_modules_do_not_import_each_other_in_a_circle(tmp_path: Path) -> None:
    assert cycle(module_graph()) == []
    package = tmp_path / "eigenoptions"
    package.mkdir()
    (package / "a.py").write_text("def f():\n    from eigenoptions.b import g")
    (package / "b.py").write_text("from eigenoptions.a import f")
    assert cycle(module_graph(package))


def test_no_control_flow_on_the_text_of_an_exception() -> None:
    """No `except ... as error` block compares ``str(error)``."""
    found = []
    for name, path in modules().items():
        for handler in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(handler, ast.ExceptHandler) and handler.name:
                tests = [ast.unparse(n) for n in ast.walk(handler) if isinstance(n, ast.Compare)]
                found += [f"{name}: {text}" for text in tests if f"str({handler.name})" in text]
    assert found == []


def test_a_first_call_loads_few_modules() -> None:
    code = (
        "import sys, eigenoptions as eo; eo.discover(eo.maze('four-rooms'), 8);"
        "print(*(name for name in sys.modules if name.split('.')[0] == 'eigenoptions'))"
    )
    loaded = subprocess.check_output([sys.executable, "-c", code], text=True).split()
    assert len(loaded) <= MAX_MODULES_OF_A_FIRST_CALL, loaded


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


def test_every_module_has_a_docstring() -> None:
    trees = {path: ast.parse(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.py")}
    assert [path.name for path, tree in trees.items() if not ast.get_docstring(tree)] == []


def test_the_fuzzer_calls_every_public_name_and_no_other() -> None:
    """Also those of the reference page and of the subpackages that list theirs."""
    from tests.fuzz_calls import CALLS, PLAIN, SLOW, public

    called = CALLS.keys() | SLOW.keys() | PLAIN
    missing = set(public()) - called
    assert not missing, f"add calls of {sorted(missing)} to CALLS in tests/fuzz_calls.py"
    assert called <= set(public())
