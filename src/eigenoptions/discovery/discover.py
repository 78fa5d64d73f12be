"""`discover`: from a source to options (paper, Sections 3 to 5, Appendices C and D).

The way is a straight line. A source is read: it is a table, has one (a maze, a finite
environment), or can be sampled. A method chooses purposes. `solve` turns them into
options. Then it is checked where the options end. Samples of numbered states become a
table, too; in feature spaces, options are learned from the samples.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, overload

from eigenoptions._notes import show_note
from eigenoptions._progress import ProgressArgument, check_progress, shows_progress
from eigenoptions._registry import source_readers
from eigenoptions._types import Randomness
from eigenoptions._validation import check_int
from eigenoptions.discovery.method import get_method
from eigenoptions.discovery.tables import Request, discover_table
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
    key: str | Key | None = ...,
    seed: int | None = ...,
    **settings: Any,
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
    **settings: Any,
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
    **settings: Any,
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
    **settings
        Settings of the method, for ``"eigen"``: `operator` ("normalized"; of an
        environment "random-walk", if a quarter of the options would stop at the end
        that they should leave), `both_signs` (True), `skip_zero` (True) and `weights`
        of the graph. To read a graph: `length` and the others of `from_graph`. To
        sample: `steps` (50,000), `n_envs` and `max_episode_steps`. For samples: `space`
        of the observations and `n_actions`, where the data do not declare them;
        `features`, and then the settings of
        `samples.feature_space.discover_features`.

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
    if n_options is not None:
        n_options = check_int("n_options", n_options)
    if seed is not None:
        seed = check_int("seed", seed, 0)
    features = settings.get("features")
    if not (features is None or isinstance(features, str) or callable(features)):
        raise TypeError(
            "features must be a name or a function from a batch of observations to an "
            f"array, got {type(features).__name__}"
        )
    follows_seed = rng is None
    if rng is None:
        rng = 0 if seed is None else seed
    request = Request(
        method=get_method(method),
        n_options=n_options,
        gamma=gamma,
        seed=seed,
        rng=rng,
        progress=progress,
        settings=settings,
    )
    wants_table = not ("steps" in settings or "features" in settings) and key is None
    if isinstance(source, MDP) and wants_table and seed is None:
        return discover_table(source, request, {"source": "table"})

    # Imported here: environments take a tenth of a second, and an MDP needs none.
    from eigenoptions.discovery.sources import follow_fixed_seed, read_source

    if follows_seed:
        request = follow_fixed_seed(source, request)
    if key is None:
        read = read_source(source, request)
    else:
        read = source_readers.find("key")(source, key, request)
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
        operator = operator or read.request.method.settings.get("operator")
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
