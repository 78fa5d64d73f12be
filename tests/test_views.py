"""Records show themselves: one line in a console, a picture in a notebook, a figure on request."""

from __future__ import annotations

import re
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib.figure import Figure

import eigenoptions as eo
from eigenoptions import _text as sketch
from eigenoptions.features import Raw


@pytest.fixture(scope="module")
def records() -> dict[str, object]:
    """One record of each kind, of a size that users have."""
    mdp = eo.maze("four-rooms")
    options = eo.discover(mdp, n_options=16)
    spectrum = eo.spectrum(eo.graph(mdp), k=14, coords=mdp.coords)
    obs = np.arange(400.0).reshape(100, 4)
    return {
        "MDP": mdp,
        "Spectrum": spectrum,
        "Purpose": eo.eigenpurposes(spectrum)[0],
        "OptionSet": options,
        "Option": options[0],
        "LearningRecord": eo.q_learning(mdp, options[:4], runs=3, episodes=5, rng=0),
        "LinearOptionSet": eo.LinearOptionSet(np.eye(20), Raw(), 2, weights=np.zeros((20, 2, 20))),
        "Transitions": eo.Transitions(obs, np.zeros(100, dtype=int), obs + 1, np.arange(100) % 10 == 9),
    }


KINDS = [
    "MDP",
    "Spectrum",
    "Purpose",
    "OptionSet",
    "Option",
    "LearningRecord",
    "LinearOptionSet",
    "Transitions",
]


@pytest.mark.parametrize("kind", KINDS)
def test_a_repr_is_one_short_line(kind, records):
    said = repr(records[kind])
    assert said.startswith(f"{kind}(")
    assert "\n" not in said
    assert len(said) < 160
    assert "array(" not in said


@pytest.mark.parametrize("kind", [kind for kind in KINDS if kind != "Purpose"])
def test_a_notebook_gets_a_view(kind, records):
    page = records[kind]._repr_html_()
    # Well formed, but for the line breaks of HTML.
    ElementTree.fromstring(page.replace("<br>", "<br/>"))
    assert "nan" not in page
    assert "http" not in page.replace("http://www.w3.org/2000/svg", "")


def test_views_state_what_they_leave_out(records):
    assert "2 more are not shown" in records["Spectrum"]._repr_html_()
    assert "4 more are not shown" in records["OptionSet"]._repr_html_()
    assert records["OptionSet"]._repr_html_().count("<svg") == 12
    assert records["Option"]._repr_html_().count("<svg") == 1
    assert "8 more are not shown" in records["LinearOptionSet"]._repr_html_()
    assert records["Spectrum"]._repr_html_().count("<svg") == 12


def test_transitions_count_steps_and_ends(records):
    assert repr(records["Transitions"]).startswith(
        "Transitions(100 steps, 10 ends; obs float64 (100, 4), 0 to 399"
    )
    pictures = eo.Transitions(
        np.zeros((1, 8, 8), np.uint8), np.zeros(1, int), np.zeros((1, 8, 8), np.uint8), [True]
    )
    assert "1 step, 1 end; obs uint8 (1, 8, 8)" in repr(pictures)
    nothing = eo.Transitions(*(np.zeros(0, int) for _ in range(4)))
    assert "0 steps, 0 ends; obs int64 (0,)" in repr(nothing)


def test_a_sparkline_rises_with_its_curve():
    assert sketch.spark(np.linspace(0, 1, 8)) == sketch.SPARK
    assert sketch.spark([5.0, 5.0], low=5.0, high=5.0) == "▁▁"
    assert sketch.spark([2.0, 4.0], low=2.0, high=4.0) == "▁█"
    assert len(sketch.spark(range(100), width=10, high=99.0)) == 10


def test_the_curve_in_a_notebook_is_the_mean(records):
    record = records["LearningRecord"]
    (points,) = re.findall(r'<polyline points="([^"]+)"', record._repr_html_())
    drawn = [(40 - float(point.split(",")[1])) / 40 for point in points.split()]
    np.testing.assert_allclose(drawn, record.mean(), atol=1e-3)
    assert str(record).splitlines()[0] == sketch.spark(record.mean())


@pytest.mark.parametrize("kind", ["Spectrum", "OptionSet", "LearningRecord"])
def test_plot_draws_the_usual_figure(kind, records):
    drawn = records[kind].plot()
    assert isinstance(drawn, Figure)
    assert len(drawn.axes) == {"Spectrum": 8, "OptionSet": 16, "LearningRecord": 1}[kind]
    assert drawn._repr_svg_().startswith("<?xml")
    assert drawn._repr_svg_() == eo.plots.svg(eo.plots.plot(records[kind]))


def test_plot_takes_the_settings_of_its_function(records):
    assert len(records["Spectrum"].plot(which=[1, 2]).axes) == 2
    assert records["LearningRecord"].plot(of="steps").axes[0].get_ylabel() == "steps"
    both = dict.fromkeys(("a", "b"), records["LearningRecord"])
    assert [line.get_label() for line in eo.plots.learning(both).axes[0].lines] == ["a", "b"]
    assert len(eo.plots.plot(records["MDP"]).axes) == 1
    with pytest.raises(TypeError, match="unexpected keyword argument 'whihc'"):
        records["Spectrum"].plot(whihc=[1])
    with pytest.raises(TypeError, match="plot takes an MDP, Spectrum, OptionSet or LearningRecord, got int"):
        eo.plots.plot(3)
    with pytest.raises(ValueError, match="same number of episodes"):
        eo.plots.learning({})
    with pytest.raises(ValueError, match="coords"):
        eo.spectrum(eo.graph(eo.maze("i-maze")), k=3).plot()


def test_numbers_and_labels_that_no_option_has(records):
    options = records["OptionSet"]
    for place in (16, -17, 99):
        with pytest.raises(IndexError, match=f"the set has 16 options, numbered from 0, got {place}"):
            options[place]
    with pytest.raises(KeyError, match=r"no option has the label 'e2': there are e2\+|e2-"):
        options["e2"]
    for ask in (options[0].act, options.choices):
        for state in (104, -1, 1000):
            with pytest.raises(IndexError, match=rf"a state is a number in 0\.\.103, got {state}"):
                ask(state)
        with pytest.raises(TypeError, match=r"a state is a number in 0\.\.103, got 'a'"):
            ask("a")
    assert options[0].act(np.int64(3)) == options[0].act(np.array(3)) == options[0].act(3)
