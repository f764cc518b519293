"""Composed figures: any variable against any axis or variable, ratios, fits, points, several results together."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr

import figures
import simulate
import statmech
import theory
from figures import arrangement, captions, curves, derived_data, overlay
from figures.inspection import find_figure_faults
from figures.panels import make_panel_grid
from statmech import ConfigError, Inference, Network, Risk, Scenario, StoredExamples
from statmech.keys.figure_key import Composition, read_figure_composition
from statmech.results.results import Results

pytestmark = pytest.mark.quick

ALPHA = [0.5, 1, 2, 4]


def computed(scenario):
    return Results(scenario, simulate.run(scenario), theory.solve(scenario))


@pytest.fixture(scope="module")
def losses():
    return computed(Risk(loss=["square", "hinge"], N=20, alpha=ALPHA, lam=0.1, flip=0.05, seeds=4))


@pytest.fixture(scope="module")
def bayes():
    return computed(Inference(prior="gauss", N=20, alpha=ALPHA, steps=15, seeds=3))


@pytest.fixture(scope="module")
def minover():
    return computed(StoredExamples(learner="minover", N=20, alpha=ALPHA, epochs=50, seeds=3))


def points(ax):
    """The points of simulations, markers without a line; not the filled ones that are drawn over hollow ones."""
    marked = [line for line in ax.lines if line.get_linestyle() == "None" and line.get_marker() in "os^D"]
    return [line for line in marked if line.get_markerfacecolor() == "white" or line.get_color() == "0"]


def dense(ax):
    return [line for line in ax.lines if len(line.get_xdata()) > 50]


def legend_of(figure):
    return [text.get_text() for legend in figure.legends for text in legend.get_texts()]


@pytest.mark.slow
def test_unasked_a_figure_shows_errors_and_overlaps_without_details_and_diagnostics(losses):
    figure = figures.draw("overlay", losses)
    assert [ax.get_ylabel() for ax in figure.axes] == ["$R$", r"$\epsilon_g$", r"$\epsilon_t$"]
    assert "gap" in curves.get_variables_with_values(losses)  # which is there, and could be drawn
    assert find_figure_faults(figure) == []
    assert "flip" not in figure.get_suptitle()
    assert r"$p_f$ = 0.05" in figure.get_suptitle()


@pytest.mark.parametrize("rule", ["hebb", ["perceptron", "adatron"]])
def test_a_note_names_the_panels_where_the_number_of_students_makes_no_difference(rule):
    ensembles = Scenario(rule=rule, K=[1, 3], N=20, t=[1, 2, 5], seeds=3)
    described = overlay.describe_figure({"": Results(ensembles, None, theory.solve(ensembles))}, Composition())
    letters = dict(zip("abcde", (panel.name for panel in described.panels), strict=True))
    assert letters == {"a": "R", "b": "q", "c": "eps_g", "d": "eps_g_majority_vote", "e": "eps_g_weight_mean"}
    assert [note for note in described.notes if "coincide" in note] == ["lines of all $K$ coincide in (a), (c)"]
    errors = overlay.describe_figure({"": Results(ensembles, None, theory.solve(ensembles))}, Composition(y="eps_g"))
    assert [note for note in errors.notes if "coincide" in note] == ["lines of all $K$ coincide"]


def test_each_variable_has_a_row_if_few_panels_show_the_values_of_an_axis():
    swept = Risk(loss=["square", "hinge"], lam=[0.1, 1], flip=[0, 0.1], N=20, alpha=ALPHA, seeds=4)
    figure = figures.draw("overlay", Results(swept, None, theory.solve(swept)))
    assert [ax.get_ylabel() for ax in figure.axes] == ["$R$", "", r"$\epsilon_g$", "", r"$\epsilon_t$", ""]
    assert [ax.get_title() for ax in figure.axes] == [r"$\lambda$ = 0.1", r"$\lambda$ = 1", "", "", "", ""]
    assert find_figure_faults(figure) == []


@pytest.mark.slow
def test_one_student_is_drawn_once_and_a_fixed_second_layer_not_at_all():
    one = computed(Scenario(rule="hebb", K=1, N=20, t=[1, 2], seeds=3))
    assert [*curves.select_main_variables(one)] == ["R", "eps_g"]
    three = computed(Scenario(rule="hebb", K=3, N=20, t=[1, 2], seeds=3))
    assert [*curves.select_main_variables(three)] == ["R", "q", "eps_g", "eps_g_majority_vote", "eps_g_weight_mean"]
    fixed = computed(Network(network="linear", N=20, t=[0, 1], seeds=3))
    assert "v" in curves.get_variables_with_values(fixed)
    assert "v" not in curves.select_main_variables(fixed)


@pytest.mark.parametrize("count", range(1, 12))
def test_a_grid_of_panels_has_no_empty_place(count):
    figure, axes = make_panel_grid(count, 3, 2.0, 6.0)
    assert len(axes) == len(figure.axes) == count
    rows = {}
    for ax in axes:
        place = ax.get_subplotspec()
        rows.setdefault(place.rowspan.start, []).append(len(place.colspan))
    total = axes[0].get_subplotspec().get_gridspec().ncols
    assert {sum(widths) for widths in rows.values()} == {total}


def test_one_variable_is_drawn_against_another_with_both_errors(losses):
    figure = figures.compose(losses, Composition(x="R", y="eps_g", series="loss"))
    [ax] = figure.axes
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("$R$", r"$\epsilon_g$")
    for loss, drawn in zip(["square", "hinge"], points(ax), strict=True):
        runs = losses.simulation.sel(loss=loss)
        np.testing.assert_allclose(drawn.get_xdata(), runs.R.mean("seed"))
        np.testing.assert_allclose(drawn.get_ydata(), runs.eps_g.mean("seed"))
    assert len(ax.collections) == 4  # bars of both coordinates, of two losses
    for line in dense(ax):
        R, error = line.get_data()
        np.testing.assert_allclose(error, np.arccos(R) / np.pi, rtol=1e-9)


@pytest.mark.parametrize(
    ("noise", "texts"), [([0, 1 / 7, 0.3], ["0", "0.1429", "0.3"]), ([0.12345, 0.12346], ["0.12345", "0.12346"])]
)
def test_a_legend_and_a_caption_round_values_to_four_digits_if_they_stay_distinct(noise, texts):
    results = computed(Scenario(rule="hebb", flip=noise, N=20, t=[1, 2], seeds=2))
    legend = legend_of(figures.compose(results, Composition(y="eps_g", series="flip")))
    assert legend[: len(texts)] == [rf"$p_f$ = {text}" for text in texts]
    assert f"$p_f$ = {', '.join(texts)};" in captions.make_caption(results, "overlay")


@pytest.mark.slow
def test_series_and_split_arrange_the_axes():
    swept = computed(Scenario(rule=["hebb", "perceptron"], eta=[0.5, 1, 2], N=20, t=[1, 5], seeds=2))
    by_eta = figures.compose(swept, Composition(y="eps_g", series="eta", split="rule"))
    assert [ax.get_title() for ax in by_eta.axes] == ["Hebbian", "perceptron"]
    assert legend_of(by_eta) == [r"$\eta$ = 0.5", r"$\eta$ = 1", r"$\eta$ = 2"]
    against = figures.compose(swept, Composition(y="eps_g", x="eta"))
    assert against.axes[0].get_xlabel() == r"$\eta$"
    [sweep] = against.axes
    assert [len(line.get_xdata()) for line in points(sweep)] == [3] * 4  # of two rules, at two times


@pytest.mark.slow
def test_a_long_axis_is_thinned_and_recorded_times_are_those_at_the_end(bayes):
    part = arrangement.arrange_results({"": bayes}, Composition(y="m"))[0]
    assert part.title_texts == ("step 15",)
    last = bayes.simulation.m.isel(step=-1).mean("seed")
    [ax] = figures.compose(bayes, Composition(y="m")).axes
    np.testing.assert_allclose(points(ax)[0].get_ydata(), last)
    thinned = figures.compose(bayes, Composition(y="m", series="step"))
    assert "7 of 16 values of step" in thinned.axes[0].get_title()
    assert len([text for text in legend_of(thinned) if text.startswith("step")]) == 7


@pytest.mark.slow
def test_results_of_several_kinds_share_a_figure(losses, minover, bayes):
    every = {"svm": losses, "minover": minover, "bayes": bayes}
    figure = figures.compose(every, Composition(y="eps_g"))
    [ax] = figure.axes
    drawn = points(ax)
    assert len(drawn) == len({line.get_color() for line in drawn}) == len({line.get_marker() for line in drawn}) == 4
    expected = [losses.simulation.eps_g.isel(loss=0), losses.simulation.eps_g.isel(loss=1)]
    expected += [minover.simulation.eps_g.isel(epochs=-1), bayes.simulation.eps_g.isel(step=-1)]
    for line, runs in zip(drawn, expected, strict=True):
        np.testing.assert_allclose(line.get_ydata(), runs.mean("seed"))
    labels = ["svm, square (4 seeds)", "svm, hinge (4 seeds)", "minover (3 seeds)", "bayes (3 seeds)"]
    assert legend_of(figure)[:4] == labels
    assert find_figure_faults(figure) == []
    assert len({str(line.get_linestyle()) for line in dense(ax)}) == 3  # equal curves of two results are both seen
    common = figures.compose(every, Composition())
    assert [ax.get_ylabel() for ax in common.axes] == [r"$\epsilon_g$"]  # what all have
    text = captions.make_joint_caption(every, Composition(y="eps_g"))
    assert "minover: learner: MinOver" in text
    assert text.endswith("Command: `statmech figure svm minover bayes --y eps_g`.")


@pytest.mark.slow
def test_results_without_a_common_axis_are_refused(losses):
    online = computed(Scenario(rule="hebb", N=20, t=[1, 2], seeds=2))
    with pytest.raises(ConfigError, match=r"no common axis \(losses against alpha and online against t\)"):
        figures.compose({"losses": losses, "online": online}, Composition(y="eps_g"))
    with pytest.raises(ConfigError, match=r'^online: figure\.x: "alpha" is not an axis'):
        figures.compose({"losses": losses, "online": online}, Composition(y="eps_g", x="alpha"))


def test_results_may_have_a_single_value_of_x_beside_others(losses):
    single = computed(Risk(loss="logistic", N=20, alpha=2, lam=0.1, seeds=3))
    figure = figures.compose({"curves": losses, "one": single}, Composition(y="eps_g", x="alpha"))
    assert [len(line.get_xdata()) for line in points(figure.axes[0])] == [4, 4, 1]
    [ax] = figures.compose(single, Composition(y="eps_g", x="alpha")).axes
    assert [line.get_xydata().tolist() for line in points(ax)] == [[[2, single.simulation.eps_g.mean().item()]]]


def test_a_ratio_is_to_theory_where_theory_has_the_divisor(losses):
    divided = derived_data.divide_variables(losses, "R_bayes", ["eps_g"])
    expected = losses.simulation.eps_g / losses.theory.R_bayes
    xr.testing.assert_allclose(divided.simulation.eps_g, expected.transpose(*losses.simulation.eps_g.dims))
    xr.testing.assert_allclose(divided.theory.eps_g, losses.theory.eps_g / losses.theory.R_bayes)
    [ax] = figures.compose(losses, Composition(y="eps_g", over="eps_g")).axes
    assert all(np.allclose(line.get_ydata(), 1) for line in dense(ax))
    assert ax.get_ylabel() == r"$\epsilon_g$ / $\epsilon_g$"


def test_a_ratio_of_simulated_variables_has_the_error_of_two_correlated_means():
    rng = np.random.default_rng(1)
    shared = 2 + 0.1 * rng.normal(size=(4000, 20))
    runs = xr.Dataset({"y": (("trial", "seed"), 3 * shared + 0.01 * rng.normal(size=shared.shape))})
    runs["o"] = ("trial", "seed"), shared
    scenario = Risk(loss="square", N=20, alpha=1, lam=0.1)
    made = derived_data.divide_variables(Results(scenario, runs), "o", ["y"]).simulation.y
    np.testing.assert_allclose(made.mean("seed"), runs.y.mean("seed") / runs.o.mean("seed"))
    stated = made.std("seed", ddof=1) / np.sqrt(runs.sizes["seed"])
    spread = float(made.mean("seed").std())
    assert float(stated.mean()) == pytest.approx(spread, rel=0.04)  # 4,000 trials: 1.1 % of the spread, 3 % bias of std
    independent = float(runs.y.std("seed").mean()) / 2 / np.sqrt(20)
    assert spread < independent / 5  # as it would be if the correlation were ignored


@pytest.mark.parametrize("law", [-1.0, 0.5])
def test_the_jackknife_states_the_error_of_an_exponent_of_correlated_points(law):
    rng = np.random.default_rng(2)
    x = np.geomspace(1, 100, 12)
    found = []
    for _ in range(300):
        tilt, scale = 0.05 * rng.normal(size=(2, 10, 1))
        found.append(derived_data.fit_exponent(x, np.exp(scale + (law + tilt) * np.log(x))))
    values, errors = np.array([(it.value, it.error) for it in found]).T
    assert values.std() == pytest.approx(np.sqrt((errors**2).mean()), rel=0.2)
    assert abs(values.mean() - law) < 0.012  # 0.05^2 log x, as the logarithm of a mean is not the mean of logarithms


@pytest.mark.slow
def test_a_fit_is_drawn_and_stated_beside_that_of_theory():
    hebb = computed(Scenario(rule="hebb", N=200, t={"geomspace": [10, 1000, 9]}, seeds=8))
    figure = figures.compose(hebb, Composition(y="eps_g", fit=True))
    [ax] = figure.axes
    assert (ax.get_xscale(), ax.get_yscale()) == ("log", "log")
    [said] = [text for text in legend_of(figure) if "propto" in text]
    assert said.startswith(r"$\epsilon_g\propto t^{\,-0.")
    assert said.endswith("theory $-0.4999$")  # the digits of the fit
    with pytest.raises(ConfigError, match="no curve has 3 positive points"):
        figures.compose(computed(Scenario(rule="hebb", N=20, t=[1, 2], seeds=2)), Composition(y="eps_g", fit=True))


def test_points_of_a_file_are_drawn_with_their_errors(losses, tmp_path):
    file = tmp_path / "mine.csv"
    file.write_text("error, y, x\n0.01, 0.3, 1\n\n0.02, 0.2, 2\n")
    figure = figures.compose(losses, Composition(y="eps_g", points=str(file)))
    [mine] = [line for line in points(figure.axes[0]) if line.get_marker() == "D"]
    assert mine.get_xydata().tolist() == [[1, 0.3], [2, 0.2]]
    assert "mine" in legend_of(figure)
    assert find_figure_faults(figure) == []


BAD_FILES = {
    "": "has no column x and y",
    "x,y\n": "has no points",
    "x,z\n1,2\n": '"z" is not a column of points',
    "x,err\n1,2\n": '"err" is not a column of points. Did you mean "error"?',
    "x,error\n1,2\n": "has no column y",
    "x,y,y\n1,2,3\n": "has a column twice",
    "x,y\n1,nan\n": r"mine\.csv:2: y must be a finite number, not \"nan\"",
    "x,y\n1,2\n2,two\n": r"mine\.csv:3: y must be a finite number, not \"two\"",
    "x,y\n1\n": "the row must have 2 values like the header, not 1",
    "x,y,error\n1,2,-1\n": "an error is negative",
    "x,y\n\xff,1": "x must be a finite number",
}


@pytest.mark.parametrize(("content", "said"), BAD_FILES.items())
def test_a_file_of_points_that_is_not_right_is_refused(content, said, tmp_path):
    file = tmp_path / "mine.csv"
    file.write_text(content, encoding="utf-8")
    with pytest.raises(ConfigError, match=said):
        overlay.read_points(file)


WRONG = {
    "y of no kind": ({"y": "eps_gg"}, '"eps_gg" is not a variable of these results. Did you mean "eps_g"?'),
    "y without a value": ({"y": "R_bayes"}, None),
    "y that is a flag": ({"y": "converged"}, "converged is not a number"),
    "x of one value": ({"x": "lam"}, None),
    "x of no kind": ({"x": "alphas"}, '"alphas" is not an axis or a variable of these results. Did you mean "alpha"?'),
    "series of one value": ({"series": "flip"}, None),
    "series along x": ({"x": "alpha", "series": "alpha"}, "alpha lies along x"),
    "split in series": ({"series": "loss", "split": "loss"}, "loss is among the series"),
    "divisor of no kind": ({"over": "R_baies"}, 'Did you mean "R_bayes"?'),
    "points of two variables": ({"y": ["R", "eps_g"], "points": "mine.csv"}, "the points are values of one variable"),
}


@pytest.mark.parametrize(("given", "said"), WRONG.values(), ids=WRONG)
def test_a_wish_that_results_cannot_meet_is_refused_with_what_they_have(given, said, losses, tmp_path):
    wish = read_figure_composition(given)
    if said is None:
        assert figures.compose(losses, wish).axes
        return
    with pytest.raises(ConfigError) as refused:
        figures.compose(losses, wish)
    assert said in str(refused.value)
    config = tmp_path / "mine.yaml"
    config.write_text(f"loss: [square, hinge]\nalpha: [1, 2]\nfigure: {wish.model_dump(mode='json')}\n")
    with pytest.raises(ConfigError, match=r"mine\.yaml:3: figure\."):
        statmech.load(config)


def test_a_divisor_of_zero_is_named_with_its_place(losses):
    training = losses.theory.assign(eps_t=losses.theory.eps_t.where(losses.theory.alpha != 2, 0.0))
    with pytest.raises(ConfigError, match=r"figure\.over: eps_t is 0 at loss = square, alpha = 2"):
        figures.compose(Results(losses.scenario, losses.simulation, training), Composition(y="eps_g", over="eps_t"))


def test_a_composition_is_a_key_of_a_config_which_the_folder_remembers(tmp_path):
    wish = {"x": "alpha", "y": "eps_g", "series": "loss"}
    scenario = Risk(loss=["square", "hinge"], alpha=[1, 2], figure=wish)
    assert scenario.config()["figure"] == wish
    assert Risk(**scenario.config()) == scenario
    assert figures.choose_figure(scenario.figure, "", "loss") == Composition(**wish)
    assert figures.choose_figure(scenario.figure, "clusters", "loss") == Composition(**wish, name="clusters")
    with pytest.raises(statmech.ScenarioError, match=r'figure\.serie: "serie" is not a key .* Did you mean "series"'):
        Risk(loss="square", alpha=1, figure={"serie": "loss"})
    section = statmech.Risk.make_schema()["$defs"]["Composition"]["properties"]
    assert [*section] == [*Composition.model_fields]


@pytest.mark.slow
def test_python_draws_one_or_several_results_as_asked(losses, bayes):
    one = statmech.Results(**vars(losses))
    assert one.draw(x="R", y="eps_g").axes[0].get_xlabel() == "$R$"
    [ax] = statmech.draw([losses, bayes], y="eps_g").axes
    assert len(points(ax)) == 3
    assert len(points(statmech.draw(losses.simulation, losses.theory, y="eps_g").axes[0])) == 2
    with pytest.raises(ConfigError, match="a published figure determines its own variables and style"):
        statmech.draw(losses, figure="overlay", y="eps_g")


@pytest.mark.slow
def test_the_command_draws_results_together_and_refuses_with_one_sentence(in_scratch, capsys, monkeypatch):
    from statmech.cli.command_group import main

    def call(*arguments):
        monkeypatch.setattr("sys.argv", ["statmech", *arguments])
        with pytest.raises(SystemExit) as ended:
            main()
        return ended.value.code, capsys.readouterr().err

    in_scratch.joinpath("svm.yaml").write_text("loss: hinge\nalpha: [1, 2]\nN: 10\nseeds: 2\nfigure: {y: eps_g}\n")
    in_scratch.joinpath("minover.yaml").write_text("learner: minover\nalpha: [1, 2]\nN: 10\nepochs: 5\nseeds: 2\n")
    for name in ("svm", "minover"):
        assert call("run", f"{name}.yaml")[0] == 0
    assert (in_scratch / "results/svm/eps_g.png").is_file()
    assert call("figure", "results/svm", "results/minover", "--y", "eps_g,R", "--formats", "png")[0] == 0
    drawn = {path.name for path in (in_scratch / "results").iterdir() if path.is_file()}
    assert drawn == {f"svm_minover_eps_g_R.{suffix}" for suffix in ("png", "txt", "tex")}
    code, said = call("figure", "results/svm", "--y", "eps_gg")
    assert code == 2
    assert said.startswith('figure.y: "eps_gg" is not a variable of these results. Did you mean "eps_g"?')
    assert said.count("\n") == 1
    assert not (in_scratch / "results/svm/eps_gg.png").exists()


@pytest.mark.slow
def test_many_ordered_values_beside_names_are_shades_in_a_panel_per_name(losses):
    swept = computed(Risk(loss=["square", "hinge"], lam=[0.01, 0.1, 1, 10], N=10, alpha=[1, 2], seeds=2))
    figure = figures.compose(swept, Composition(y="eps_g"))
    assert [ax.get_title() for ax in figure.axes] == ["square", "hinge"]
    assert len({line.get_color() for line in points(figure.axes[0])}) == 4
    names = figures.compose(losses, Composition(y="eps_g", x="loss")).axes[0]
    assert [tick.get_text() for tick in names.get_xticklabels()] == ["square", "hinge"]
    assert not [line for line in names.lines if line.get_linestyle() == "-"]  # nothing lies between two names


def test_columns_and_width_lay_out_the_panels(losses):
    y = ["R", "eps_g", "eps_t"]
    rows = [
        {ax.get_subplotspec().rowspan.start for ax in figures.compose(losses, Composition(y=y, columns=n)).axes}
        for n in (1, 3)
    ]
    assert [len(starts) for starts in rows] == [3, 1]
    narrow, wide = (figures.compose(losses, Composition(y="R", width=width)) for width in ("column", "page"))
    assert 2 * narrow.get_figwidth() == wide.get_figwidth()


def test_points_are_joined_nested_replaced_by_runs_or_accompanied_by_runs_of_a_guide(losses):
    def lines(**keys):
        return figures.compose(losses, Composition(y="eps_g", series="loss", **keys)).axes[0].lines

    sizes = [
        {line.get_markersize() for line in lines(nested=nested) if line.get_marker() in "os"}
        for nested in (False, True)
    ]
    assert [len(found) for found in sizes] == [1, 2]
    assert len(lines(join=True)) == len(lines())  # lines of theory join the points
    alone = Results(losses.scenario, losses.simulation, None)
    counts = [
        len(figures.compose(alone, Composition(y="eps_g", series="loss", join=join)).axes[0].lines)
        for join in (False, True)
    ]
    assert counts[1] == counts[0] + 2
    assert sum(line.get_alpha() == 0.5 for line in lines(single_runs=True)) == 2 * losses.scenario.seeds
    [crosses] = [line for line in lines(guides=[{"y": "arccos(R) / pi", "runs": True}]) if line.get_marker() == "x"]
    mean = (np.arccos(losses.simulation.R) / np.pi).isel(loss=0).mean("seed")
    np.testing.assert_allclose(crosses.get_ydata(), mean)


def test_joined_points_of_two_curves_move_apart_only_if_their_error_bars_overlap(losses):
    runs = losses.simulation

    def positions(distance):
        offset = distance * (runs.loss == "hinge")
        results = Results(losses.scenario, runs.assign(eps_g=runs.eps_g.isel(loss=0, drop=True) + offset), None)
        axes = figures.compose(results, Composition(y="eps_g", series="loss", join=True)).axes
        return np.array([line.get_xdata() for line in points(axes[0])])

    near, far = positions(1e-9), positions(10.0)
    np.testing.assert_array_equal(far[0], far[1])
    assert (near[0] < far[0]).all()
    assert (near[1] > far[1]).all()


def test_a_value_has_one_colour_in_all_panels_and_no_marker_of_a_variable():
    swept = computed(StoredExamples(learner="minover", N=10, alpha=[1, 2], epochs=[5, 20, 50], seeds=2))

    def styles(*panels):
        axes = figures.compose(swept, Composition(panels=panels, series="epochs")).axes
        return [{(line.get_color(), line.get_marker()) for line in points(ax)} for ax in axes]

    every, some = styles({"y": "eps_g"}, {"y": "kappa", "at": {"epochs": [5, 50]}})
    assert len(every) == 3
    assert some == every - {("#D55E00", "s")}
    named, other = styles({"y": {"eps_g": "one", "eps_t": "two"}}, {"y": "kappa"})
    assert {colour for colour, _ in named} == {colour for colour, _ in other}
    assert not {marker for _, marker in named} & {marker for _, marker in other}
