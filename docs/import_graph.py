"""Print the import graph of the package: lines per entry, and which entry imports which.

    python docs/import_graph.py            # entries of src/eigenoptions, as a table
    python docs/import_graph.py --modules  # every module with the modules it imports

`tests/test_architecture.py` uses the same functions to hold the layers.
"""

from __future__ import annotations

import argparse
import ast
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

PACKAGE = Path(__file__).parent.parent / "src" / "eigenoptions"


def is_type_checking(node: ast.AST) -> bool:
    """Whether a statement is an ``if TYPE_CHECKING`` block."""
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


def entry(path: Path, package: Path = PACKAGE) -> str:
    """The top-level entry that a file belongs to: ``_kernels/planning.py`` is part of ``_kernels``."""
    return path.relative_to(package).parts[0].removesuffix(".py")


def modules(package: Path = PACKAGE) -> dict[str, Path]:
    """Every module's dotted name and file; a package goes by its own name."""
    found = {}
    for path in sorted(package.rglob("*.py")):
        parts = path.relative_to(package.parent).with_suffix("").parts
        found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def module_graph(package: Path = PACKAGE) -> dict[str, set[str]]:
    """For every module the modules of the package that it imports, anywhere in its text except for type checkers."""
    known = modules(package)
    graph: dict[str, set[str]] = {}
    for name, path in known.items():
        graph[name] = set()
        for _, target in imports(path, skip_type_checking=True):
            # `from package.module import name` imports the module, or the submodule of that name
            found = next((t for t in (target, target.rpartition(".")[0]) if t in known), None)
            if found not in (None, name, package.name):
                graph[name].add(found)
    return graph


def cycle(graph: dict[str, set[str]]) -> list[str]:
    """Modules that import each other in a circle, or an empty list."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def entries(package: Path = PACKAGE) -> dict[str, tuple[int, int, set[str]]]:
    """For every top-level entry its number of files, of lines, and the entries it imports."""
    table: dict[str, tuple[int, int, set[str]]] = {}
    graph = module_graph(package)
    for name, path in modules(package).items():
        me = entry(path, package)
        files, lines, uses = table.get(me, (0, 0, set()))
        uses = uses | {target.split(".")[1] for target in graph[name]} - {me}
        table[me] = files + 1, lines + len(path.read_text(encoding="utf-8").splitlines()), uses
    return table


def main() -> None:
    """Print the table, or every module."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--modules", action="store_true", help="print every module with its imports")
    if parser.parse_args().modules:
        for name, used in module_graph().items():
            print(name, "->", *sorted(target.removeprefix("eigenoptions.") for target in used))
        return
    table = entries()
    print("| entry | files | lines | imports |\n|---|---|---|---|")
    for name, (files, lines, uses) in table.items():
        print(f"| `{name}` | {files} | {lines:,} | {' '.join(sorted(uses))} |")
    study = table["experiments"][1]
    total = sum(lines for _, lines, _ in table.values())
    print(f"\n{len(modules())} modules; the library {total - study:,} lines, experiments {study:,} lines")


if __name__ == "__main__":
    main()
