"""Reading files of options; `save` of each set of options writes them.

`options.files` describes the format. There are two kinds: ``"options"`` of a table, and
``"linear options"`` of a feature space. `_collect_file_contents` of each set says what
is in them.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

from eigenoptions._registry import option_files
from eigenoptions._text import printable
from eigenoptions._types import FeatureFunction
from eigenoptions.mdp import MDP
from eigenoptions.mdp.recognition import Recognition
from eigenoptions.options.files import Arrays, read_arrays
from eigenoptions.options.records import OptionSet, Purpose

if TYPE_CHECKING:
    from eigenoptions.samples.linear import LinearOptionSet


def load_options(
    path: str | Path,
    mdp: MDP | None = None,
    only: int | slice | Sequence[int] | None = None,
    *,
    features: FeatureFunction | None = None,
    basis: FeatureFunction | None = None,
) -> OptionSet | LinearOptionSet:
    """Read options that `OptionSet.save` or `LinearOptionSet.save` wrote.

    Parameters
    ----------
    path : str or Path
        The file.
    mdp : MDP, default=None
        The state space that its options must have been computed for. None: not checked.
    only : int, slice, sequence of int or mask, default=None
        Select these options. None: all.
    features : callable, default=None
        The map phi of a `LinearOptionSet`, if it is a function, which a file cannot
        hold.
    basis : callable, default=None
        The map psi of a `LinearOptionSet`, if it is a function.

    Returns
    -------
    OptionSet or LinearOptionSet
        ``options.mdp`` is the whole MDP of the options. In a table, their purposes have
        no potential.

    Examples
    --------
    >>> import eigenoptions as eo, tempfile, pathlib
    >>> folder = tempfile.TemporaryDirectory()
    >>> file = pathlib.Path(folder.name) / "skills.safetensors"
    >>> eo.discover(eo.maze("i-maze"), n_options=4).save(file)
    >>> eo.load_options(file, only=2)
    OptionSet(1 option on 19 states: e3+)
    >>> folder.cleanup()
    """
    header, arrays = read_arrays(path)
    kind = header["kind"]
    if kind not in ("options", *option_files.names()):
        raise ValueError(f"{path} holds {printable(str(kind))}, not options")

    if kind == "options" and not (features is None and basis is None):
        raise ValueError(
            f"{path} holds options of a table, not of a feature space: leave out "
            "features and basis"
        )

    options: OptionSet | LinearOptionSet
    try:
        if kind == "options":
            options = _make_options(header, arrays)
        else:
            options = option_files.find(kind)(header, arrays, features, basis)
    except Exception as error:
        # The file may be forged, and its text must not control the terminal.
        reason = printable(str(error))
        raise ValueError(f"the options of {path} cannot be read: {reason}") from None

    if mdp is not None:
        if not isinstance(options, OptionSet):
            raise ValueError(
                f"{path} holds options of a feature space, not of an MDP: leave out mdp"
            )
        options.check(mdp)

    if only is None:
        return options
    if isinstance(only, int | np.integer):
        only = [int(only)]
    return options[only]


def _make_options(header: dict[str, Any], arrays: Arrays) -> OptionSet:
    """Return the options of a table from what `OptionSet.save` wrote."""
    mdp = _make_mdp(header["mdp"], arrays)
    if header.get("state_space", mdp.fingerprint) != mdp.fingerprint:
        raise ValueError("its state space does not match its fingerprint")
    purposes = [Purpose(None, **fields) for fields in header["purposes"]]
    return OptionSet(
        mdp, arrays["policy"], arrays["value"], purposes, header["provenance"]
    )


def _make_mdp(header: dict[str, Any], arrays: Arrays) -> MDP:
    """Return the MDP of a file of options, from its part of the header."""
    n_states = arrays["policy"].shape[1]
    table = _make_csr("transition", arrays, n_states)

    for name in ("name", "legend"):
        if not isinstance(header.get(name, ""), str):
            raise ValueError("name and legend must be text")

    coords = arrays.get("mdp.coords")
    if coords is not None and np.abs(coords.astype(float)).max() > 2**31:
        raise ValueError("coords must be below 2^31")

    fields: dict[str, Any] = {
        "coords": coords,
        "headings": arrays.get("mdp.headings"),
        "positions": arrays.get("mdp.positions"),
        "reward": arrays.get("mdp.reward"),
    }
    if "recognition" in header:
        fields["recognition"] = Recognition(**header["recognition"])
    if "mdp.weights.data" in arrays:
        fields["weights"] = _make_csr("mdp.weights", arrays, n_states)
    if "mdp.states" in arrays:
        fields["states"] = _to_tuples(json.loads(arrays["mdp.states"].tobytes()))
    return MDP(table, **{**header, **fields})


def _make_csr(name: str, arrays: Arrays, n_columns: int) -> csr_array:
    """Return a sparse array from its three arrays; its user checks the indices."""
    data = arrays[f"{name}.data"]
    indices = arrays[f"{name}.indices"]
    indptr = arrays[f"{name}.indptr"]
    return csr_array((data, indices, indptr), shape=(len(indptr) - 1, n_columns))


def _to_tuples(value: Any) -> Any:
    """Return JSON lists as tuples, so that a state can be hashed."""
    if isinstance(value, list):
        return tuple(_to_tuples(part) for part in value)
    return value
