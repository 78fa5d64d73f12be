"""Options of a table: a method chooses purposes, `solve` makes options of them."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from scipy.sparse.csgraph import connected_components

from eigenoptions._ties import find_first_maximum
from eigenoptions._validation import check_memory, make_generator
from eigenoptions.discovery.request import Request
from eigenoptions.mdp import MDP
from eigenoptions.mdp.chains import stay_at_end, uniform_walk
from eigenoptions.options import OptionSet, Purpose
from eigenoptions.options.solver import solve

logger = logging.getLogger("eigenoptions")


def discover_table(
    mdp: MDP,
    request: Request,
    provenance: dict[str, Any],
    *,
    is_environment: bool = False,
) -> OptionSet:
    """Options of a table.

    Parameters
    ----------
    mdp : MDP
        The table.
    request : Request
        What the caller asks for.
    provenance : dict
        Where the table comes from.
    is_environment : bool, default=False
        Whether the options are for an agent in an environment. Then they need not be
        those of the paper's Laplacian.
    """
    method = request.method
    _check_request(mdp, request)
    options = _solve_purposes(mdp, request, provenance)
    if method.alternative is None:
        return options

    # A few options that end on the wrong side are normal: those of the smallest hills.
    wrong = find_wrong_ends(options)
    if 4 * len(wrong) < len(options):
        return options
    problem = (
        f"{len(wrong)} of {len(options)} options terminate mostly where their "
        "eigenvector is negative"
    )
    given = request.list_settings()
    is_chosen = any(name in given for name in method.alternative)
    if is_chosen or not is_environment:
        logger.warning(
            f"{problem} ({', '.join(wrong[:3])}): try a larger gamma (0.99) or "
            'operator="random-walk"'
        )
        return options

    # No eigenvector of this operator has a local maximum where it is negative.
    logger.info(f'{problem}: operator="random-walk" takes the place of "normalized"')
    return _solve_purposes(mdp, request.with_settings(**method.alternative), provenance)


def _check_request(mdp: MDP, request: Request) -> None:
    """Raise TypeError for values nobody uses, ValueError for too many options."""
    method = request.method
    request.check_use("a table")

    # A potential, a value and an action of each option and state, and masks of them.
    n_options = request.n_options
    if n_options is None and method.count_purposes is not None:
        n_options = mdp.n_listed
    if n_options is not None:
        what = f"{n_options:,} options of {mdp.n_states:,} states"
        check_memory(what, 20 * n_options * mdp.n_states, "ask for fewer (n_options)")

    # Counting takes some work, and nearly nobody asks for more options than states.
    if method.count_purposes is None or request.n_options is None:
        return
    if request.is_default or request.n_options <= mdp.n_listed:
        return
    n_purposes = method.count_purposes(stay_at_end(mdp), **request.list_settings())
    if request.n_options > n_purposes:
        raise ValueError(
            f"n_options must be in 1..{n_purposes} for {mdp.n_listed} states, "
            f"got {request.n_options}"
        )


def _solve_purposes(
    mdp: MDP, request: Request, provenance: dict[str, Any]
) -> OptionSet:
    """Let the method choose purposes, and solve them."""
    method = request.method
    # A method knows no additional states: to it, an end of an episode is no move.
    part = stay_at_end(mdp)
    gamma = request.gamma
    if gamma is None:
        gamma = method.choose_gamma(part)

    # Methods that walk or solve on their own ask for the discount and the progress.
    given = request.list_settings()
    settings = dict(given)
    if "gamma" in method.settings:
        settings["gamma"] = gamma
    if "progress" in method.settings:
        settings["progress"] = request.progress
    generator = make_generator(request.rng)
    result = method.function(part, request.n_options, generator, **settings)
    _check_result(method.name, result)
    request.check_number(result, method.candidates)
    if mdp.n_additional:
        result = _add_states(result, mdp)

    about = {"method": method.name, "gamma": gamma, "mdp": mdp.name}
    # Which operator it was matters to readers, also where nobody chose it.
    if "operator" in method.settings:
        about["operator"] = given.get("operator", method.settings["operator"])
    for name, value in given.items():
        is_scalar = isinstance(value, str | bool | int | float)
        # A default that is passed is the same call as one that is left out.
        if is_scalar and value != method.settings[name]:
            about[name] = value
    about |= provenance
    if isinstance(result, OptionSet):
        return replace(result, provenance=about)
    return solve(mdp, result, gamma, provenance=about, progress=request.progress)


def _add_states(
    result: Sequence[Purpose] | OptionSet, mdp: MDP
) -> list[Purpose] | OptionSet:
    """Return purposes or options of an MDP that has additional states besides."""
    listed = np.arange(mdp.n_listed)
    if isinstance(result, OptionSet):
        return result.extend(mdp, listed)
    return [purpose.extend(listed, mdp.n_states) for purpose in result]


def _check_result(name: str, result: object) -> None:
    """Raise TypeError for what a method must not return."""
    if isinstance(result, OptionSet):
        return
    problem = type(result).__name__
    if isinstance(result, list | tuple):
        others = [part for part in result if not isinstance(part, Purpose)]
        if not others:
            return
        problem = f"a list with {type(others[0]).__name__}"
    raise TypeError(
        f"method {name!r} must return a list of Purpose, or an OptionSet, got {problem}"
    )


def find_wrong_ends(options: OptionSet) -> list[str]:
    """Labels of options that terminate at the end that they should leave.

    That is mostly where their eigenvector is negative.
    """
    wrong = []
    component = None
    for purpose, ends in zip(options.purposes, options.termination, strict=True):
        potential = np.asarray(purpose.potential)
        is_negative = potential < 1e-9 * potential.min()
        if 2 * np.count_nonzero(is_negative & ends) <= np.count_nonzero(ends):
            continue

        # Only states count that lead to the other end and back: elsewhere no setting
        # changes where options stop.
        if component is None:
            moves = uniform_walk(options.mdp)
            component = connected_components(moves, connection="strong")[1]
        highest = find_first_maximum(potential)
        ends = ends & (component == component[highest])
        if 2 * np.count_nonzero(is_negative & ends) > np.count_nonzero(ends):
            wrong.append(purpose.label)
    return wrong
