"""`discover`: from a source to options (paper, Sections 3 to 5, Appendices C and D).

The way is a straight line. A source is read: it is a table, has one (a maze, a finite
environment), or can be sampled. A method chooses purposes. `solve` turns them into
options. Then it is checked where the options end. Samples of numbered states become a
table, too; in feature spaces, options are learned from the samples.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, overload

from numpy.typing import ArrayLike

from eigenoptions._notes import show_note
from eigenoptions._progress import ProgressArgument, check_progress, shows_progress
from eigenoptions._types import FeatureFunction, Randomness
from eigenoptions.discovery.features import Fitted, Trained
from eigenoptions.discovery.method import get_method
from eigenoptions.discovery.request import Request, read_features
from eigenoptions.discovery.tables import discover_table
from eigenoptions.mdp import MDP
from eigenoptions.mdp.recognition import Recognition
from eigenoptions.options import OptionSet

if TYPE_CHECKING:
    from eigenoptions.discovery.sources import ReadSource
    from eigenoptions.envs.families import Key
    from eigenoptions.samples.linear import LinearOptionSet


@overload
def discover(
    source: MDP,
    n_options: int | None = ...,
    method: str = ...,
    *,
    gamma: float | None = ...,
    rng: Randomness | None = ...,
    progress: ProgressArgument = ...,
    operator: str | None = ...,
    both_signs: bool = ...,
    skip_zero: bool = ...,
    **of_method: Any,
) -> OptionSet: ...
@overload
def discover(
    source: Any,
    n_options: int | None = ...,
    method: str = ...,
    *,
    gamma: float | None = ...,
    key: str | Key | None = ...,
    seed: int | None = ...,
    rng: Randomness | None = ...,
    progress: ProgressArgument = ...,
    steps: int | None = ...,
    max_episode_steps: int | None = ...,
    n_actions: int | None = ...,
    space: Any = ...,
    columns: Sequence[int | str] | None = ...,
    cell_size: ArrayLike | None = ...,
    features: str | FeatureFunction | Fitted | Trained | None = ...,
    training_steps: int | None = ...,
    operator: str | None = ...,
    both_signs: bool = ...,
    skip_zero: bool = ...,
    length: str | bool = ...,
    pos: Mapping[Hashable, ArrayLike] | None = ...,
    **of_method: Any,
) -> OptionSet | LinearOptionSet: ...
@shows_progress
def discover(
    source: Any,
    n_options: int | None = None,
    method: str = "eigen",
    *,
    gamma: float | None = None,
    key: str | Key | None = None,
    seed: int | None = None,
    rng: Randomness | None = None,
    progress: ProgressArgument = None,
    steps: int | None = None,
    max_episode_steps: int | None = None,
    n_actions: int | None = None,
    space: Any = None,
    columns: Sequence[int | str] | None = None,
    cell_size: ArrayLike | None = None,
    features: str | FeatureFunction | Fitted | Trained | None = None,
    training_steps: int | None = None,
    operator: str | None = None,
    both_signs: bool = True,
    skip_zero: bool = True,
    length: str | bool = False,
    pos: Mapping[Hashable, ArrayLike] | None = None,
    **of_method: Any,
) -> OptionSet | LinearOptionSet:
    """Options of an MDP, a maze, an environment or samples, without any reward.

    See Sections 3 and 5 of the paper.

    Parameters
    ----------
    source : object
        An `MDP`; whatever `maze` accepts (a name, the text of a map, a path); a graph
        of networkx or a sparse matrix of weights, as in `from_graph`; a Gymnasium
        environment, its id or a function that creates it; what `explore` found; or
        whatever `Transitions.of` accepts (arrays, lists of steps or episodes, data
        frames, replay buffers, Minari data sets).

        A finite environment is read exactly: from its table, or by a search of its
        states if it is deterministic (of one with more than 20,000 states and Dict
        observations, those that `explore` finds in 20,000 steps). Others are sampled by
        a random walk, and so is any environment for which you give `steps` or
        `features`. What was done is shown in one line, unless you configured logging,
        and recorded in ``provenance["source"]``: "table", "explored" or "samples".
        Samples of numbered states give an `OptionSet`, other observations a
        `LinearOptionSet`.
    n_options : int, default=None
        Number of options, both signs counted. None: all there are of an MDP or a maze,
        and of methods that have one per room; 32 of an environment or samples, which
        served exploration and learning on maps of every kind (16 of trained features).
    method : str, default="eigen"
        One of `methods`: ``"eigen"``, eigenoptions in order of eigenvalue, + before -;
        ``"bottleneck"``, one option per room, to its closest doorway (Appendix C);
        ``"random"``, shortest paths to random states (Appendix D); and more.
    gamma : float, default=None
        Discount of the options' purposes. None: that of the method, which is 0.9 for
        eigenoptions (0.99 in a feature space), and so close to 1 that the goal matters
        everywhere for options that lead to a goal.
    key : str or callable, default=None
        What a state of an environment is, if it is less than all of it: a function
        ``key(env.unwrapped, obs)`` to something hashable (the agent's place, say), or a
        name that `explore` knows (``"observation"``, ``"pose"``). Under it dynamics may
        be random. The environment is explored for `steps` (20,000) in the layout of
        `seed`. Options belong to the key: they run in every layout in which it means
        the same, where it has been seen.
    seed : int, default=None
        Seed of the environment's reset, on which MiniGrid's layout depends. None: that
        of `FixedSeed`, or 0. A sampled environment has no layout of its own, and
        refuses it.
    rng : int or Generator, default=None
        Draws samples, generated mazes, and what the method draws. None: it follows from
        the seed.
    progress : bool or callable, default=None
        True shows a bar, None only after two seconds. A function is called as
        ``progress(done, total)`` in each part of the work.
    steps : int, default=None
        Number of steps that sample an environment, also one that has a table; with
        `key`, most steps that explore it. None: 50,000 of an environment that can only
        be sampled, and 20,000 with `key`.
    max_episode_steps : int, default=None
        Length of episodes while an environment is sampled. None: its own.
    n_actions : int, default=None
        Number of actions of recorded data. None: as the data declare, or show.
    space : gymnasium.Space, default=None
        Space of recorded observations. None: as the data declare, or show.
    columns : sequence of int or str, default=None
        The columns of vectors to use, by number or name. None: all that vary. One that
        drifts is named in a warning; see `check_columns`.
    cell_size : float or sequence of float, default=None
        Sides of the cells that vectors are sorted into, one for all columns or one for
        each that is used. None: chosen from the data.
    features : str, callable, Fitted or Trained, default=None
        Learn options in a feature space (Section 5.2): a function from a batch of
        observations to ``(N, d)``, or the name of one (``"fourier"``, ``"tiles"``,
        ``"ram"``, ...); ``"deep"`` trains one. The records `Fitted` and `Trained` hold
        the settings of these ways. None: numbered states become a table, vectors are
        sorted into cells, and other observations have the features of ``Fitted()``.
    training_steps : int, default=None
        Number of training steps of ``"deep"``. None: some 15 seconds.
    operator : str, default=None
        Operator of the graph, as in `spectrum`. None: ``"normalized"``; of an
        environment ``"random-walk"``, if a quarter of the options would stop at the end
        that they should leave; of samples of numbered states ``"combinatorial"``.
    both_signs, skip_zero : bool, default=True
        As in `eigenpurposes`.
    length : str or bool, default=False
        Which attribute of a graph's edges is a length, as in `from_graph`.
    pos : mapping, default=None
        Places of a graph's nodes, as in `from_graph`.
    **of_method
        Settings of the method, by the names that it declares: `weights` of the graph
        for ``"eigen"``, `t` for ``"diffusion"``, and so on.

    Notes
    -----
    `source`, `method`, `key`, `steps` and `features` choose what is done. Any other
    value that is what None stands for changes nothing, and one that would not be used
    is an error.

    Examples
    --------
    >>> discover("four-rooms", n_options=4)
    OptionSet(4 options on 104 states: e2+, e2-, e3+, e3-)
    >>> discover("four-rooms", method="bottleneck")
    OptionSet(4 options on 104 states: room 1, room 2, room 3, room 4)
    >>> discover("MountainCar-v0", n_options=2, steps=2000, features="fourier")
    LinearOptionSet(2 learned options on 16 features: e2+, e2-)
    """
    progress = check_progress(progress)
    follows_seed = rng is None
    if rng is None:
        rng = 0 if seed is None else seed
    request = Request(
        method=get_method(method),
        n_options=n_options,
        gamma=gamma,
        key=key,
        seed=seed,
        rng=rng,
        progress=progress,
        steps=steps,
        max_episode_steps=max_episode_steps,
        n_actions=n_actions,
        space=space,
        columns=columns,
        cell_size=cell_size,
        features=read_features(features, training_steps),
        operator=operator,
        both_signs=both_signs,
        skip_zero=skip_zero,
        length=length,
        pos=pos,
        of_method=of_method,
    )
    return discover_request(source, request, follows_seed=follows_seed)


def discover_request(
    source: Any, request: Request, *, follows_seed: bool = False
) -> OptionSet | LinearOptionSet:
    """Return the options of a source that a request asks for, and show what was done.

    Parameters
    ----------
    source : object
        What `discover` accepts.
    request : Request
        What the caller asks for.
    follows_seed : bool, default=False
        Whether all that is random follows the seed of `FixedSeed`.
    """
    request.check_method()
    wants_table = request.key is None and not request.wants_samples
    if isinstance(source, MDP) and wants_table and request.seed is None:
        return discover_table(source, request, {"source": "table"})

    # Imported here: environments take a tenth of a second, and an MDP needs none.
    from eigenoptions.discovery.sources import follow_fixed_seed, read_source

    if follows_seed:
        request = follow_fixed_seed(source, request)
    read = read_source(source, request)
    options = read.discover()

    if read.is_environment or read.kind == "samples":
        show_note(_describe(source, read, options))

    # The options of an environment that is given look ahead in it.
    if getattr(options, "kind", "") == "look-ahead" and hasattr(source, "step"):
        return options.look_ahead(source)  # type: ignore[union-attr]
    return options


def _describe(
    source: object, read: ReadSource, options: OptionSet | LinearOptionSet
) -> str:
    """Say in a line what was done, and what was chosen for the caller."""
    about = options.provenance
    name = about.get("mdp") or about.get("environment") or type(source).__name__
    size = f"{len(options)} options"
    operator = about.get("operator")
    recognition = None
    if isinstance(options, OptionSet):
        size = f"{len(options)} options on {options.n_states:,} states"
        recognition = options.mdp.recognition
    if recognition is None:
        recognition = Recognition(by=None)

    if about.get("source") == "table":
        kind = "its own table"
    elif about.get("source") == "samples":
        kind = f"{about.get('transitions', 0):,} samples"
    elif read.table is None:
        kind = "what was explored"
    elif recognition.is_partial:
        kind = "the part that was found"
    else:
        kind = "a search of its states"
    if recognition.layout is not None:
        kind += f" in the layout of seed {recognition.seed}"

    choices = [f"method {read.request.method.name}"]
    if operator is not None:
        choices.append(f"operator {operator}")
    if "gamma" in about:
        choices.append(f"gamma {about['gamma']:g}")
    return f"{name}: {size}, from {kind} ({', '.join(choices)})"
