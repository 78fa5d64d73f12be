"""A Sphinx extension: the build fails when a public name is not documented.

Public are the names in ``eigenoptions.__all__``, the methods and properties of its classes, and the fields of
its records; and the functions and classes of the modules in `MODULES`. A name counts as documented when the reference
has an entry for it (autodoc leaves out methods without a docstring); a field when the docstring of its class speaks
of it.
"""

from __future__ import annotations

import dataclasses
import inspect
import re
from collections.abc import Collection, Iterator
from functools import cached_property
from importlib import import_module
from typing import Any

from sphinx.application import Sphinx
from sphinx.environment import BuildEnvironment
from sphinx.errors import SphinxError

import eigenoptions

# Modules whose names have pages of their own, in docs/reference.
MODULES = ("plots", "envs", "envs.sb3", "features", "mdp.maps", "deep")
MEMBERS = (property, cached_property, classmethod, staticmethod)


def undocumented(entries: Collection[str]) -> Iterator[str]:
    """Public names that are missing in the entries of the reference, or have nothing to say."""
    for name in eigenoptions.__all__:
        value = getattr(eigenoptions, name)
        doc = inspect.getdoc(value) or ""
        if f"eigenoptions.{name}" not in entries or not doc:
            yield name
        if not inspect.isclass(value):
            continue
        for member, body in vars(value).items():
            is_code = inspect.isfunction(body) or isinstance(body, MEMBERS)
            if is_code and not member.startswith("_") and f"eigenoptions.{name}.{member}" not in entries:
                yield f"{name}.{member}"
        if dataclasses.is_dataclass(value):
            for field in dataclasses.fields(value):
                if not re.search(rf"\b{field.name}\b", doc):
                    yield f"{name}.{field.name}"


def undocumented_in(name: str, entries: Collection[str]) -> Iterator[str]:
    """Functions and classes of a module that are missing in the entries of the reference."""
    module = import_module(f"eigenoptions.{name}")
    for member, value in vars(module).items():
        listed = member in getattr(module, "__all__", (member,))
        own = getattr(value, "__module__", "").startswith(module.__name__)
        if own and listed and member[0] != "_" and (inspect.isfunction(value) or inspect.isclass(value)):
            known = f"eigenoptions.{name}.{member}" in entries or f"eigenoptions.{member}" in entries
            if not known or not inspect.getdoc(value):
                yield f"{name}.{member}"


def check(app: Sphinx, env: BuildEnvironment) -> None:
    """Stop the build with the whole list."""
    entries = env.get_domain("py").objects
    missing = [*undocumented(entries), *(name for m in MODULES for name in undocumented_in(m, entries))]
    if missing:
        raise SphinxError(f"public names without documentation: {', '.join(missing)}; see docs/api.md")


def setup(app: Sphinx) -> dict[str, Any]:
    """Look once all documents have been read."""
    app.connect("env-check-consistency", check)
    return {"parallel_read_safe": True}
