"""What the caller of `discover` asks for: one typed record that travels to the readers.

Each reader takes the values that are its own. What is left at the end is refused: a
value that changes nothing would be a silent mistake.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import TYPE_CHECKING, Any

from numpy.typing import ArrayLike

from eigenoptions._registry import discovery_methods
from eigenoptions._types import FeatureFunction, Progress, Randomness
from eigenoptions._validation import check_int, check_settings
from eigenoptions.discovery.features import Fitted, Trained
from eigenoptions.discovery.method import Method, NoOptionsError
from eigenoptions.options import OptionSet, Purpose

if TYPE_CHECKING:
    from eigenoptions.envs.families import Key

# Parameters of `discover` that belong to a kind of source, and to which.
_KINDS = {
    "steps": "environments",
    "max_episode_steps": "environments that are sampled (give steps=)",
    "n_actions": "recorded data",
    "space": "recorded data",
    "columns": "vectors",
    "cell_size": "vectors without features=",
    "length": "graphs",
    "pos": "graphs",
}


@dataclass(frozen=True, eq=False)
class Request:
    """What the caller of `discover` asks for; the fields are its parameters.

    `of_method` are further settings of the method. With `is_default`, the number of
    options is one of ours and not the caller's, so that fewer will do. With
    `needs_layout`, the seed is that of a layout, and what has none is refused.
    """

    method: Method
    n_options: int | None = None
    gamma: float | None = None
    key: str | Key | None = None
    seed: int | None = None
    rng: Randomness = 0
    progress: Progress | None = None
    steps: int | None = None
    max_episode_steps: int | None = None
    n_actions: int | None = None
    space: Any = None
    columns: Sequence[int | str] | None = None
    cell_size: ArrayLike | None = None
    features: Fitted | Trained | None = None
    operator: str | None = None
    both_signs: bool = True
    skip_zero: bool = True
    length: str | bool = False
    pos: Mapping[Hashable, ArrayLike] | None = None
    of_method: Mapping[str, Any] = field(default_factory=dict)
    is_default: bool = False
    needs_layout: bool = True

    def __post_init__(self) -> None:
        if self.n_options is not None:
            n_options = check_int("n_options", self.n_options)
            object.__setattr__(self, "n_options", n_options)
        if self.seed is not None:
            object.__setattr__(self, "seed", check_int("seed", self.seed, 0))

    @property
    def wants_samples(self) -> bool:
        """Whether the caller wants samples, also of what has a table."""
        return self.steps is not None or self.features is not None

    def with_default_number(self, n_options: int = 32) -> Request:
        """The same request for some options, if nobody else says how many."""
        if self.n_options is not None or self.method.n_options is None:
            return self
        # Trained features have a number of their own.
        if isinstance(self.features, Trained):
            return self
        return replace(self, n_options=n_options, is_default=True)

    def with_settings(self, **settings: Any) -> Request:
        """The same request with settings of the method; the caller's come first."""
        operator = settings.pop("operator", None)
        if self.operator is not None:
            operator = self.operator
        of_method = {**settings, **self.of_method}
        return replace(self, operator=operator, of_method=of_method)

    def list_settings(self) -> dict[str, Any]:
        """Return the settings of the method that are not left to it, by name."""
        settings = dict(self.of_method)
        if self.operator is not None:
            settings["operator"] = self.operator
        # Leaving them out and passing their defaults is the same.
        if not self.both_signs:
            settings["both_signs"] = False
        if not self.skip_zero:
            settings["skip_zero"] = False
        return settings

    def check_method(self) -> None:
        """Raise TypeError for settings that the method does not have."""
        own_names = self.method.list_settings()
        for name in self.list_settings():
            if name not in own_names:
                self._refuse_setting(name, own_names)

    def _refuse_setting(self, name: str, own_names: list[str]) -> None:
        """Raise TypeError that says where a setting belongs."""
        owner = f"method {self.method.name!r}"
        for record in (Fitted, Trained):
            if name in [part.name for part in fields(record)]:
                raise TypeError(
                    f"{owner} has no setting {name!r}: it is one of features="
                    f"eo.{record.__name__}(..., {name}=)"
                )

        others = []
        for other in discovery_methods.names():
            if name in discovery_methods.find(other).list_settings():
                others.append(repr(other))
        if others:
            raise TypeError(
                f"{name}= is for method {' and '.join(others)}, not for {owner}: "
                "leave it out"
            )
        names_of_discover = [part.name for part in fields(self)]
        check_settings(owner, [name], own_names, names_of_discover)

    def check_use(self, what: str) -> None:
        """Raise TypeError for a value that is left and that nobody will use.

        Parameters
        ----------
        what : str
            What the source was read as.
        """
        given = {
            "steps": self.steps,
            "max_episode_steps": self.max_episode_steps,
            "n_actions": self.n_actions,
            "space": self.space,
            "columns": self.columns,
            "cell_size": self.cell_size,
            # Its default is False, which asks for nothing.
            "length": self.length or None,
            "pos": self.pos,
        }
        for name, value in given.items():
            if value is not None:
                raise TypeError(
                    f"{name}= is for {_KINDS[name]}, not for {what}: leave it out"
                )

    def check_number(
        self, purposes: list[Purpose] | OptionSet, candidates: str
    ) -> None:
        """Raise ValueError if there are fewer purposes than the caller asked for."""
        if not len(purposes):
            raise NoOptionsError(
                f"there are no options of these states: the number of {candidates} is "
                "0; a table of one state, or whose actions lead nowhere, has none"
            )
        if self.n_options is None or self.is_default:
            return
        if len(purposes) < self.n_options:
            raise ValueError(
                f"n_options must be in 1..{len(purposes)}, the number of {candidates}, "
                f"got {self.n_options}; {self.method.remedy}"
            )


def read_features(
    features: str | FeatureFunction | Fitted | Trained | None,
    training_steps: int | None = None,
) -> Fitted | Trained | None:
    """Return the record that `features` and `training_steps` of `discover` stand for.

    Examples
    --------
    >>> read_features("deep", training_steps=20)
    Trained(steps=20, policy=None)
    >>> read_features(None) is None
    True
    """
    read: Fitted | Trained | None
    if isinstance(features, str) and features == "deep":
        read = Trained()
    elif features is None or isinstance(features, Fitted | Trained):
        read = features
    else:
        read = Fitted(features)

    if training_steps is None:
        return read
    if not isinstance(read, Trained):
        raise TypeError(
            'training_steps= is for features="deep", which are trained: leave it out'
        )
    if read.steps not in (None, training_steps):
        raise ValueError(
            f"training_steps={training_steps} and Trained(steps={read.steps}) are two "
            "numbers: give one"
        )
    return Trained(check_int("training_steps", training_steps), read.policy)
