"""Options files: safetensors with JSON metadata, written to a temporary name and renamed. No pickle.

The metadata of a file has one entry, ``"eigenoptions"``: the digest of the file (see `_compute_digest`), a space, and
a JSON object with the ``kind`` of the file, the version of its ``format`` and what the kind needs beside its arrays.
`save_options` describes the two kinds.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from scipy.sparse import csr_array

from eigenoptions._types import FeatureFunction
from eigenoptions.features import features_from_dict
from eigenoptions.mdp import MDP
from eigenoptions.options.files import Arrays, read_arrays
from eigenoptions.options.linear import LinearOptionSet
from eigenoptions.options.records import OptionSet, Purpose


def load_options(
    path: str | Path,
    mdp: MDP | None = None,
    only: int | slice | Sequence[int] | None = None,
    *,
    features: FeatureFunction | None = None,
    basis: FeatureFunction | None = None,
) -> Any:
    """Read options that `OptionSet.save` or `LinearOptionSet.save` wrote.

    Parameters
    ----------
    path : str or Path
        The file.
    mdp : MDP, default=None
        The state space that its options must have been computed for; None: not checked.
    only : int, slice, sequence of int or mask, default=None
        Select these options; None: all.
    features, basis : callable, default=None
        The maps phi and psi of a `LinearOptionSet`, where they were functions, which a file cannot hold.

    Returns
    -------
    OptionSet or LinearOptionSet
        ``options.mdp`` is the whole MDP of the options. Their purposes have no potential in a table.

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
    if header["kind"] not in ("options", "linear options"):
        raise ValueError(f"{path} holds {header['kind']}, not options")
    try:
        if header["kind"] == "options":
            options: Any = _make_options(header, arrays)
        else:
            options = _make_linear_options(header, arrays, features, basis)
    except Exception as error:
        raise ValueError(f"the options of {path} cannot be read: {error}") from None
    if mdp is not None:
        if isinstance(options, LinearOptionSet):
            raise ValueError(
                f"{path} holds options of a feature space, not of an MDP: leave out mdp"
            )
        options.check(mdp)
    if only is None:
        return options
    return options[[only] if isinstance(only, int | np.integer) else only]


def _make_options(header: dict[str, Any], arrays: Arrays) -> OptionSet:
    table = [arrays[f"transition.{name}"] for name in ("data", "indices", "indptr")]
    shape = len(table[2]) - 1, arrays["policy"].shape[1]
    fields: dict[str, Any] = {
        name: arrays.get(f"mdp.{name}") for name in ("coords", "reward")
    }
    if "mdp.states" in arrays:
        fields["states"] = _to_tuples(json.loads(arrays["mdp.states"].tobytes()))
    if not all(
        isinstance(header["mdp"].get(name, ""), str) for name in ("name", "legend")
    ):
        raise ValueError("name and legend must be text")
    if (
        fields["coords"] is not None
        and np.abs(fields["coords"].astype(float)).max() > 2**31
    ):
        raise ValueError("coords must be below 2^31")
    mdp = MDP(csr_array(tuple(table), shape=shape), **header["mdp"], **fields)
    if header.get("state_space", mdp.fingerprint) != mdp.fingerprint:
        raise ValueError("its state space does not match its fingerprint")
    purposes = [Purpose(None, **fields) for fields in header["purposes"]]
    return OptionSet(
        mdp, arrays["policy"], arrays["value"], purposes, header["provenance"]
    )


def _make_linear_options(
    header: dict[str, Any], arrays: Arrays, features: Any, basis: Any
) -> LinearOptionSet:
    maps: dict[str, Any] = {}
    for name, function in (("features", features), ("basis", basis)):
        own = {
            key[len(name) + 1 :]: array
            for key, array in arrays.items()
            if key.startswith(f"{name}.")
        }
        maps[name] = features_from_dict(
            {**header[name], "arrays": own} if own else header[name], function
        )
    pairs = zip(arrays["directions"], header["purposes"], strict=True)
    return LinearOptionSet(
        [Purpose(direction, **fields) for direction, fields in pairs],
        weights=arrays.get("weights"),
        threshold=arrays["threshold"],
        **maps,
        **{
            name: header[name]
            for name in ("n_actions", "provenance", "patience", "stop_chance")
        },
    )


def _to_tuples(value: Any) -> Any:
    """JSON lists as tuples, so that a state can be hashed."""
    return tuple(map(_to_tuples, value)) if isinstance(value, list) else value
