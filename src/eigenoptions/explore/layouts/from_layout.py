"""Options of the part of a layout that is known."""

from __future__ import annotations

from eigenoptions.discovery.request import Request
from eigenoptions.discovery.sources import ReadSource
from eigenoptions.explore.layouts.found import LayoutFound


def read_layout(found: LayoutFound, request: Request) -> ReadSource:
    """Read what is known of a layout: the table of its poses."""
    return ReadSource(
        table=found.mdp,
        kind="explored",
        request=request.with_default_number(),
        is_environment=True,
    )
