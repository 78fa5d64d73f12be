"""Former names of `options.linear`, until no caller is left."""

from eigenoptions.options.linear import RunningOption as Running
from eigenoptions.options.linear import start_option as begun

__all__ = ["Running", "begun"]
