"""Experiments, claims and notes as declarations: words are data, ``claims.toml``; code passes tests and numbers.

The paper's sentences are data too, ``statements.toml``. One that makes a checkable statement is quoted; runs of
sentences that make none are summarised, with their number, so that the numbers per section add up to the paper's.

Every text of ``claims.toml`` is a template of `str.format`. Its fields are the values that the experiment passes, the
names of `limits`, and ``n_NAME``, the number of items of a value. ``each.NAME`` is the template of one item of the
value NAME, joined by ``"; "``; as a table it has the template ``of``, what to ``join`` by, and what to say if there is
``none``. An item is a row (fields are its columns), or a tuple or pair of a dict (fields are positions). ``table`` has
a template per column of the rows; one that is a single field keeps the type of its value.
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterable, Mapping
from functools import cache
from importlib.resources import files
from typing import Any, cast

import numpy as np

from reproduction import limits
from reproduction.experiment import Claim, Experiment, Note, Settings, verdict

LIMITS = {name: value for name, value in vars(limits).items() if name.isupper()}
FIELDS = ("sentence", "section", "measured", "evidence", "lesson")


@cache
def declarations() -> dict[str, Any]:
    """All declarations: ``experiment``, ``claim`` and ``note`` by name, ``rules``, and each ``measure`` of the arena.

    >>> declarations()["claim"]["lemma-3.2"]["section"]
    'Appendix A'
    """
    return _read("claims.toml")


def _read(name: str) -> dict[str, Any]:
    return tomllib.loads((files("reproduction") / name).read_text(encoding="utf-8"))


def experiment(name: str, settings: Mapping[str, Settings], **functions: Any) -> Experiment:
    """The experiment of this name with its settings and functions, see `Experiment`.

    >>> experiment("figure1", {}, run=dict, figure=dict).title
    'Figure 1: the domains'
    """
    return Experiment(name, settings=settings, **declarations()["experiment"][name], **functions)


def judge(name: str, *tests: bool | np.bool_ | None, rows: Any = (), **values: Any) -> Claim:
    """The claim of this name: its words with these values, and the verdict of these tests.

    >>> judge("lemma-3.2", True, share=1.0, norms=[1, 2]).measured
    'largest norm, as a share of its bound: 1.000 (2 stochastic matrices)'
    """
    declared = declarations()["claim"][name]
    known = _known(declared, values)
    words = {field: declared.get(field, "").format_map(known) for field in FIELDS}
    decided = verdict(*(None if test is None else bool(test) for test in tests))
    own = declared.get("id", name).format_map(known)
    return Claim(**words, verdict=decided, id=own, rows=_table(declared, rows))


def note(name: str, rows: Any = None, **values: Any) -> Note:
    """The note of this name: a paragraph, or with `rows` a table and its caption.

    >>> note("walks", [])
    ('', [])
    """
    declared = declarations()["note"][name]
    text: str = declared.get("text", "").format_map(_known(declared, values))
    return text if rows is None else (text, _table(declared, rows))


@cache
def rules() -> dict[str, Any]:
    """The rules in words: what is ``compared``, ``words`` of degree, rules set ``later``, and ``changes`` of rules.

    >>> rules()["words"]["a few options"]
    'at most 8'
    """
    return cast("dict[str, Any]", _worded(declarations()["rules"]))


def _worded(tree: Any) -> Any:
    """Templates of a tree, with the numbers of `limits`."""
    if isinstance(tree, str):
        return tree.format_map(LIMITS)
    return {k: _worded(v) for k, v in tree.items()} if isinstance(tree, dict) else [*map(_worded, tree)]


def _known(declared: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, Any]:
    """Fields of the templates of a declaration."""
    sized = {f"n_{name}": len(x) for name, x in values.items() if hasattr(x, "__len__")}
    known = {**LIMITS, **sized, **values}
    for name, how in declared.get("each", {}).items():
        of = {"of": how} if isinstance(how, str) else how
        parts = [_filled(of["of"], item) for item in _items(values[name])]
        known[name] = of.get("join", "; ").join(parts) or of.get("none", "")
    return known


def _table(declared: Mapping[str, Any], rows: Any) -> Any:
    if "table" not in declared:
        return rows
    return [
        {head: _filled(template, row) for head, template in declared["table"].items()} for row in _items(rows)
    ]


def _items(values: Any) -> Iterable[Any]:
    return values.items() if isinstance(values, Mapping) else values


def _filled(template: str, item: Any) -> Any:
    """A template with the values of one item; the value itself where the template is its field."""
    row = item if isinstance(item, Mapping) else {}
    parts = () if row else item if isinstance(item, tuple) else (item,)
    if single := re.fullmatch(r"\{(\w+)\}", template):
        return row[single[1]] if row else parts[int(single[1])]
    return template.format(*parts, **{**LIMITS, **row})
