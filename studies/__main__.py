"""Studies beyond the paper.

``python -m studies arena`` compares methods,
``python -m studies ogbench`` plans to goals in logged data,
``python -m studies ogbench-data NAME`` records OGBench's PointMaze data,
``python -m studies shaping`` compares dense rewards,
``python -m studies exploration`` measures the automatic setting of exploration,
``python -m studies layouts`` trains agents with skills in layouts never seen,
``python -m studies vectors`` explores where nothing repeats,
and ``python -m studies environments`` tries 63 environments.
"""

from __future__ import annotations

import sys
from importlib import import_module

STUDIES = (
    "arena",
    "ogbench",
    "ogbench-data",
    "shaping",
    "exploration",
    "layouts",
    "vectors",
    "environments",
)


def main(arguments: list[str]) -> None:
    """Run the study that the first argument names."""
    if not arguments or arguments[0] in ("-h", "--help"):
        print(__doc__)
        return
    name = arguments[0]
    if name not in STUDIES:
        raise ValueError(f"no study called {name!r}: choose from {', '.join(STUDIES)}")
    study = import_module(f"studies.{name.replace('-', '_')}")
    study.main(arguments[1:])


if __name__ == "__main__":
    try:
        main(sys.argv[1:])
    except KeyboardInterrupt:
        print(
            "interrupted: the same command continues where this run stopped",
            file=sys.stderr,
        )
        sys.exit(130)
    except (ValueError, OSError, ImportError) as error:
        notes = getattr(error, "__notes__", [])
        sys.exit(" ".join([f"error: {error}", *notes]))
