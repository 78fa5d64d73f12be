"""Flags of commands: their types, and those that several commands share as dataclasses that commands inherit."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Optional

from tyro.conf import FlagCreatePairsOff, Positional, arg
from tyro.constructors import PrimitiveConstructorSpec

if TYPE_CHECKING:
    from eigenoptions.cli.terminal import Bar
    from eigenoptions.discovery.methods import Method

# Commands are classes, and Optional is not written "| None": for functions and for such unions tyro loads a
# type checker, which takes longer than all the rest of --help.
Flag = FlagCreatePairsOff[bool]
Folder = Annotated[Optional[Path], arg(metavar="DIR", help_behavior_hint="")]  # noqa: UP045
Names = Annotated[Optional[str], arg(metavar="NAME,...", help_behavior_hint="(default: all)")]  # noqa: UP045


def _number(kind: type, word: str, metavar: str) -> PrimitiveConstructorSpec[Any]:
    """How a flag reads a number that may be left out; tyro's own message would name Python types."""

    def read(given: list[str]) -> Any:
        try:
            return kind(given[0])
        except ValueError:
            raise ValueError(f"it takes {word}, got {given[0]!r}") from None

    return PrimitiveConstructorSpec(1, metavar, read, lambda x: True, lambda x: [str(x)])


Count = Annotated[Optional[int], _number(int, "a whole number", "N")]  # noqa: UP045
Discount = Annotated[Optional[float], _number(float, "a number", "G")]  # noqa: UP045
Chance = Annotated[Optional[float], _number(float, "a number", "P")]  # noqa: UP045


def named(registry: str, default: str | None = None) -> Any:
    """Settings of a flag that takes a name of a registry, ``"module.name"``, which is read when the help is shown."""

    def hint(shown: str) -> str:
        module, _, name = registry.rpartition(".")
        names: Iterable[str] | Callable[[], Iterable[str]] = getattr(
            import_module(f"eigenoptions.{module}"), name
        )
        return f"(default: {default or shown}; one of {', '.join(names() if callable(names) else names)})"

    return arg(metavar="NAME", help_behavior_hint=hint)


def split_names(given: str | None) -> list[str]:
    """The names in a flag of type `Names`; empty if it was not given.

    >>> split_names("figure1, figure2")
    ['figure1', 'figure2']
    """
    return [] if given is None else [name.strip() for name in given.split(",")]


@dataclass(frozen=True, kw_only=True)
class Printed:
    """Flags of commands that print results.

    Attributes
    ----------
    as_json
        Print one JSON object and nothing else.
    """

    as_json: Annotated[Flag, arg(name="json", help_behavior_hint="")] = False


@dataclass(frozen=True, kw_only=True)
class Experiments(Printed):
    """Flags of commands that run experiments.

    Attributes
    ----------
    engine
        Where jobs run: in this process, in one process per core, or on a Ray cluster (the one of RAY_ADDRESS, or a
        local one). The results are the same.
    workers
        Number of processes or Ray tasks at the same time.
    fresh
        Run again what has results, also where the folder holds results of other settings.
    """

    engine: Annotated[str, named("parallel.ENGINES")] = "processes"
    workers: Annotated[Count, arg(help_behavior_hint="(default: one per core)")] = None
    fresh: Flag = False

    def run_settings(self, status: Bar) -> dict[str, Any]:
        """What every function that runs experiments takes: how to run them, and how to report their progress."""
        return {"fresh": self.fresh, "tell": status.begin, "progress": status.step}


def _settings_hint(shown: str) -> str:
    from eigenoptions.discovery.methods import method, methods

    parts = [
        f"{name}: {', '.join(k if v is None else f'{k}={v}' for k, v in method(name).defaults.items())}"
        for name in methods()
        if method(name).defaults
    ]
    return f"(default: {'; '.join(parts)}; a name without a value takes a file of numbers)"


@dataclass(frozen=True)
class Maze:
    """Flags of commands about the options of a maze.

    Attributes
    ----------
    maze
        Name of a built-in maze (see: eigenoptions mazes), path to a map, or a map by rule: rooms:100x100 (100 rows of
        100 rooms), perfect:707x707 (crossings of a perfect maze), open:50x50 (cells), with --rng as its seed.
    method
        Method that discovers the options.
    set
        Settings of the method.
    operator
        Laplacian whose eigenvectors are used; the paper's is normalized.
    skip_zero
        Leave out eigenvectors of eigenvalue zero, which have no direction; the paper counts them.
    rng
        Seed of everything that is random.
    out
        Folder for the results as files; it is created if it does not exist.
    """

    maze: Annotated[Positional[str], arg(metavar="MAZE")]
    method: Annotated[str, named("discovery.methods.methods")] = "eigen"
    set: Annotated[tuple[str, ...], arg(metavar="NAME=VALUE", help_behavior_hint=_settings_hint)] = ()
    operator: Annotated[str, named("spectra.OPERATORS")] = "normalized"
    skip_zero: bool = True
    rng: int = 0
    out: Folder = None

    @property
    def declared(self) -> Method:
        """Declaration of the method."""
        from eigenoptions.discovery.methods import method

        return method(self.method)

    @property
    def method_settings(self) -> dict[str, Any]:
        """Those of the flags that are settings of the method."""
        flags: dict[str, Any] = {"operator": self.operator, "skip_zero": self.skip_zero}
        flags = {name: value for name, value in flags.items() if name in self.declared.settings}
        return {**flags, **self.own_settings}

    @property
    def own_settings(self) -> dict[str, Any]:
        """The settings of --set, each of the type of its default."""
        return dict(_setting(text, self.declared) for text in self.set)


@dataclass(frozen=True)
class Discounted(Printed, Maze):
    """Flags of commands that show the options of a maze for a chosen discount.

    Attributes
    ----------
    gamma
        Discount of the eigenpurpose, in [0, 1): the higher, the farther an option goes down to reach a higher value.
    """

    gamma: Annotated[Discount, arg(help_behavior_hint="(default: 0.9 for eigenoptions, else close to 1)")] = (
        None
    )


def _setting(text: str, method: Method) -> tuple[str, Any]:
    """Name and value of a setting of a method."""
    name, equals, value = text.partition("=")
    if not equals:
        raise ValueError(f"--set takes NAME=VALUE, got {text!r}")
    known = method.defaults
    if name not in known:
        have = f"it has {', '.join(known)}" if known else "it has none"
        raise ValueError(f"method {method.name!r} has no setting {name!r}: {have}")
    default = known[name]
    if default is None:
        return name, _numbers(Path(value))
    if isinstance(default, bool):
        if value.lower() not in ("true", "false"):
            raise ValueError(f"{name} must be true or false, got {value!r}")
        return name, value.lower() == "true"
    try:
        return name, type(default)(value)
    except ValueError:
        kind = "a whole number" if isinstance(default, int) else "a number"
        raise ValueError(f"{name} must be {kind}, got {value!r}") from None


def _numbers(path: Path) -> Any:
    """Numbers of a text file or of an .npy file."""
    import numpy as np

    if not path.is_file():
        raise FileNotFoundError(f"no file {path}: this setting takes a file of numbers, text or .npy")
    return np.load(path, allow_pickle=False) if path.suffix == ".npy" else np.loadtxt(path)
