"""From a source to options: `discover`, and one file per method."""

from eigenoptions.discovery.discover import discover

__all__ = ["discover"]
