"""What lower layers use by name and upper layers provide.

Imports point down only. Still, a file of options may name a feature map that lives
above `features`, and ``options.check(env)`` needs the environments above `options`. The
lower layer looks such a thing up in one of the registries at the end of this file. The
root of the package, which every import runs first, says where each of them lives, and
its module is imported when somebody asks for it.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, Generic, TypeVar

T = TypeVar("T")


class Registry(Generic[T]):
    """Entries of one kind by name, some of which are imported on first use.

    Parameters
    ----------
    kind : str
        What an entry is, for error messages.

    Examples
    --------
    >>> codecs = Registry("codec")
    >>> codecs.add("identity", str)
    >>> codecs.announce("json", "json:dumps")
    >>> codecs.names()
    ['identity', 'json']
    >>> codecs.find("json")([1, 2])
    '[1, 2]'
    """

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._entries: dict[str, T] = {}
        self._locations: dict[str, str] = {}
        self._folders: list[str] = []

    def add(self, name: str, entry: T) -> None:
        """Add an entry, or replace the one with this name."""
        self._entries[name] = entry

    def announce(self, name: str, location: str) -> None:
        """Say where an entry lives, as ``"module:attribute"``."""
        self._locations[name] = location

    def announce_folder(self, package: str) -> None:
        """Say that the modules of a package add entries when they are imported."""
        self._folders.append(package)

    def names(self) -> list[str]:
        """Names of all entries, sorted."""
        self._import_folders()
        return sorted({*self._entries, *self._locations})

    def find(self, name: str) -> T:
        """The entry with a name; ValueError lists the names if there is none."""
        if not isinstance(name, str) or name not in self._entries:
            # Imported here, because it loads SciPy: ``import eigenoptions`` is light.
            from eigenoptions._validation import check_choice

            check_choice(self.kind, name, self.names())

        if name not in self._entries:
            module, _, attribute = self._locations[name].partition(":")
            self._entries[name] = getattr(import_module(module), attribute)
        return self._entries[name]

    def find_for(self, value: object) -> T | None:
        """The entry that was announced under the name of the class of a value, if any.

        Names stand for classes whose modules need not be loaded.
        """
        for base in type(value).__mro__:
            name = f"{base.__module__}.{base.__qualname__}"
            if name in self._locations:
                return self.find(name)
        return None

    def _import_folders(self) -> None:
        while self._folders:
            package = import_module(self._folders.pop())
            for module in iter_modules(package.__path__):
                import_module(f"{package.__name__}.{module.name}")


# Classes of feature maps, which options files name.
feature_maps: Registry[Any] = Registry("features")

# Readers of recorded data, from which a table counts its transitions.
data_readers: Registry[Any] = Registry("reader of data")

# Functions (source, request) that read a source of `discover` for it. Under the name of
# a class stands the reader of its objects.
source_readers: Registry[Any] = Registry("reader of sources")

# What makes options of samples in upper rooms: of vectors, of options that were fitted
# to them, of trained features.
sample_readers: Registry[Any] = Registry("reader of samples")

# Functions (header, arrays, features, basis) that make the options of a file, by the
# kind that its header names. Options of a table need none.
option_files: Registry[Any] = Registry("kind of options")

# Discovery methods: one file each in `discovery/methods`.
discovery_methods: Registry[Any] = Registry("method")

# Functions (options, environment) that raise ValueError where the two do not fit.
environment_checks: Registry[Any] = Registry("check")

# Functions (record) that return the HTML of a notebook: figures, which `plots` draws.
# Those of options take a title, too.
notebook_pictures: Registry[Callable[..., str]] = Registry("picture")
