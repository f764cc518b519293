"""Simulate the first runs of entry pages, which the explorer shows while it simulates.

python tests/first_runs.py    # after a change of a page or of a simulation: writes figures/explorer/first_runs
"""

import gzip
import shutil

import simulate
from figures.explorer import computation, settings
from figures.explorer.live_scenario import SIMULATION_TIME_LIMIT_OPTIONS
from figures.explorer.page import choose_opening_page, complete_view, named
from statmech.config import config_files
from statmech.kinds.selection_and_vocabulary import scenario_from
from statmech.stores.sweep_cost import estimate_cost

CONFIGS = (
    *("ensemble", "double_descent", "plateau", "clusters", "early_stopping", "forgetting", "stopping"),
    *("generations", "moving_teacher", "replay", "binary_perceptron", "hitting_times"),
)
MAX_SECONDS_OF_ALL_SEEDS = 0.1
NUM_SEEDS_OF_SLOW_PAGES = 8  # the page does not simulate all their seeds unasked


def list_entry_scenarios():
    """Return the scenarios of entry pages by name: the first page of each kind, and pages of configs."""
    pages = settings.get_page_settings_by_kind()
    views = {f"{kind} page": (kind, complete_view(kind, page.view)) for kind, page in pages.items()}
    for name in CONFIGS:
        scenario = config_files.load(name)
        views[name] = choose_opening_page(scenario, named(scenario, name))
    return {
        name: scenario_from(settings.expand_page_config(kind, view.config, view.x))
        for name, (kind, view) in views.items()
    }


def simulate_first_runs(scenario):
    """Return the runs that the page of a scenario stores."""
    seconds, number = estimate_cost(scenario).seconds, computation.NUM_PREVIEW_SEEDS
    if seconds > SIMULATION_TIME_LIMIT_OPTIONS["a minute"]:
        number = NUM_SEEDS_OF_SLOW_PAGES
    elif seconds < MAX_SECONDS_OF_ALL_SEEDS and not scenario.recorded_coordinates:
        number = scenario.seeds
    runs = simulate.run(scenario.model_copy(update={"seeds": min(number, scenario.seeds)}))
    if "step" not in runs.dims:
        return runs
    last = runs.step == runs.step[-1]  # the step that the page opens with
    return runs.assign({key: values.where(last) for key, values in runs.items() if values.dtype == "float64"})


def main():
    shutil.rmtree(computation.FIRST_RUNS_FOLDER, ignore_errors=True)
    computation.FIRST_RUNS_FOLDER.mkdir()
    for name, scenario in list_entry_scenarios().items():
        runs = simulate_first_runs(scenario)
        single = runs.assign(
            {key: values.astype("float32") for key, values in runs.items() if values.dtype == "float64"}
        )
        path = computation.get_first_runs_path(scenario)
        path.write_bytes(gzip.compress(bytes(single.to_netcdf(engine="scipy")), mtime=0))
        print(name, path.name, path.stat().st_size)


if __name__ == "__main__":
    main()
