"""How often simulation exceeds the 99 % bound if theory is right, and how often 3 % too much in theory is found.

python benchmarks/calibration.py           # about seven minutes
python benchmarks/calibration.py --tiny    # the same at toy size: tests that it runs; its numbers are meaningless

Many seeds of a sweep are simulated once; each trial draws 4, 8, 16 or 64 of them at random and compares their mean with
a theory that is right: the equations, at an N so large that corrections of order 1/N are small beside the standard
errors; the mean of all seeds, which is right at any N; or, for Gaussian seeds of the same covariance, their mean.

With standard errors that the theory of order 1/N predicts one seed is enough: every sweep then has seeds of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import timing
import xarray as xr

import simulate
import theory
from statmech import Scenario, StoredExamples
from statmech.keys.scenario import AbstractScenario
from statmech.numerics import statistics
from statmech.results import comparison
from statmech.results.results import Results

SEEDS, FEWER = (4, 8, 16, 64), (1, 4, 16, 64)  # with standard errors from their spread, and with predicted ones
TRIALS, PREDICTED_TRIALS, PLANTED_TRIALS, ERROR = 4000, 1000, 20, 1.03
EXAMPLES = 50  # trials whose number of independent values is averaged
FEWEST = 10  # values for each independent one, at most, so that few trials are in doubt
RULES, TIMES = ["hebb", "perceptron", "adatron"], [0, 0.5, 1, 2, 3.5, 6, 10, 20, 50]  # of configs/ensemble.yaml
LARGE = {"rule": ["hebb", "perceptron"], "K": [1, 3], "N": 100_000, "t": [0.01, 0.02, 0.05, 0.1], "seeds": 16_384}
LAYOUT = {"rule": RULES, "K": 3, "N": 1_000, "t": TIMES, "seeds": 2_048}
STORED = {"learner": ["hebb", "minover"], "N": 50, "alpha": [1, 3], "epochs": [1, 10, 100], "seeds": 2_048}
PREDICTED = {"rule": ["hebb", "perceptron"], "K": [1, 3], "N": 400, "t": [0.5, 2, 5], "corrections": True}
PLANTED = {"rule": RULES, "K": 3, "N": 10_000, "t": TIMES[:-1], "seeds": 192}
TINY = {"rule": "hebb", "K": 1, "N": 100, "t": [0.5, 1, 2], "seeds": 64}


@dataclass(frozen=True)
class Population:
    """Deviations from right theory, (seeds, values) for each parameter combination."""

    name: str
    cells: Sequence[np.ndarray]

    def draw(self, count: int, rng: np.random.Generator) -> list[np.ndarray]:
        """A sweep of some of the seeds, which are independent from one parameter combination to the next."""
        return [cell[rng.integers(len(cell), size=count)] for cell in self.cells]

    def gaussian(self, name: str) -> Population:
        """Gaussian seeds of the same covariance in each parameter combination."""
        rng = np.random.default_rng(2)
        factors = [np.linalg.qr(cell - cell.mean(axis=0), mode="r") / np.sqrt(len(cell)) for cell in self.cells]
        drawn = [rng.standard_normal((len(self.cells[0]), len(factor))) @ factor for factor in factors]
        return Population(name, [cell - cell.mean(axis=0) for cell in drawn])


def against_equations(name: str, scenario: AbstractScenario) -> Population:
    return Population(name, _deviations(scenario, theory.solve(scenario)))


def against_mean(name: str, scenario: AbstractScenario) -> Population:
    return Population(name, _deviations(scenario, None))


def _deviations(scenario: AbstractScenario, solution: xr.Dataset | None) -> list[np.ndarray]:
    """Arrays (seeds, values) of deviations from a theory or, without one, from the mean."""
    simulation = simulate.run(scenario)
    names = [name for name, variable in scenario.variables.items() if variable.in_theory and name in simulation]
    runs = _students_averaged(simulation[names])
    expected = runs.mean("seed") if solution is None else _students_averaged(solution[names])
    cells = np.prod(list(scenario.shape.values()), dtype=int)
    deviations = [
        (runs[name] - expected[name]).transpose(*scenario.shape, "seed", ...).values.reshape(cells, scenario.seeds, -1)
        for name in names
    ]
    return [_with_spread(cell) for cell in np.concatenate(deviations, axis=2)]


def _students_averaged(dataset: xr.Dataset) -> xr.Dataset:
    return dataset.mean("student") if "student" in dataset.dims else dataset


def _with_spread(cell: np.ndarray) -> np.ndarray:
    return cell[
        :, np.std(cell, axis=0) > comparison.DEVIATION_ROUNDING_TOL
    ]  # NaN, such as q of a single student, has none


def exceeded(of: Population, count: int, trials: int) -> list[object]:
    """How many sweeps of so many seeds exceed the bound, and that of Bonferroni; and the numbers behind the bound."""
    rng, largest, bounds, independent = np.random.default_rng(1), [], [], []
    values = sum(cell.shape[1] for cell in of.cells)
    for trial in range(trials):
        sweep = of.draw(count, rng)
        largest.append(max(float(np.max(np.abs(_t(cell)))) for cell in sweep))
        in_doubt = largest[-1] > statistics.compute_deviation_bound(values / FEWEST, count)
        if trial < EXAMPLES or in_doubt:
            number = statistics.count_independent_values(
                np.array([cell.shape[1] for cell in sweep]), sweep.__getitem__, count
            )
            assert number > values / FEWEST
        if trial < EXAMPLES:
            independent.append(number)
        bounds.append(statistics.compute_deviation_bound(number if in_doubt else values, count))
    beyond = np.mean(np.greater(largest, bounds))
    bonferroni = np.mean(np.greater(largest, statistics.compute_deviation_bound(values, count)))
    error, number = np.sqrt(beyond * (1 - beyond) / trials), float(np.mean(independent))
    row = [of.name, count, f"{trials:,}", f"{beyond:.2%} ± {error:.2%}", f"{bonferroni:.2%}"]
    return [
        *row,
        values,
        number,
        statistics.compute_deviation_bound(number, count),
        statistics.compute_min_seeds(values),
    ]


def _t(runs: np.ndarray) -> np.ndarray:
    return np.asarray(np.sqrt(len(runs)) * runs.mean(axis=0) / runs.std(axis=0, ddof=1))


def found(scenario: AbstractScenario, count: int, trials: int) -> list[list[object]]:
    """How many sweeps exceed the bound where theory is 3 % too large in one variable at a time."""
    simulation, solution = simulate.run(scenario), theory.solve(scenario)
    rng, rows = np.random.default_rng(3), []
    draws = [rng.integers(scenario.seeds, size=count) for _ in range(trials)]
    sweeps = [simulation.isel(seed=draw).assign_coords(seed=np.arange(count)) for draw in draws]
    for name in ["none", *(str(name) for name in solution.data_vars if name in simulation)]:
        wrong = solution if name == "none" else solution.assign({name: solution[name] * ERROR})
        distances = [comparison.distances(Results(scenario, sweep, wrong)) for sweep in sweeps]
        largest = [_largest(distance) for distance in distances]
        beyond = [z > comparison.get_deviation_bound(distance) for z, distance in zip(largest, distances, strict=True)]
        rows.append([name, count, trials, f"{np.mean(beyond):.1%}", float(np.min(largest))])
    return rows


def exceeded_of_predicted(scenario: AbstractScenario, trials: int) -> list[list[object]]:
    """The same with predicted standard errors, of sweeps without a seed in common."""
    simulation, solution, rows = simulate.run(scenario), theory.solve(scenario), []
    sweeps = simulation.coarsen(seed=max(FEWER)).construct(seed=("sweep", "seed"))
    for count in FEWER:
        distance = comparison.distances(Results(scenario, sweeps.isel(seed=slice(count)), solution))
        values, z = distance.attrs["values"] / trials, abs(distance.to_dataarray())
        bound = statistics.compute_deviation_bound(values, None)
        beyond = float((z.max([dim for dim in z.dims if dim != "sweep"]) > bound).mean())
        error = np.sqrt(beyond * (1 - beyond) / trials)
        rows.append([count, f"{trials:,}", f"{beyond:.2%} ± {error:.2%}", values, bound])
    return rows


def _largest(distance: xr.Dataset) -> float:
    return max(
        abs(z) for row in comparison.iterate_deviation_rows(distance) for z in row.largest_deviations.values() if z == z
    )


def main() -> None:
    tiny = timing.tiny(__doc__)
    small, counts, trials, planted = (TINY, SEEDS[:1], 1, 1) if tiny else ({}, SEEDS, TRIALS, PLANTED_TRIALS)
    print(timing.machine())
    layout = against_mean("times and rules of `ensemble`, K = 3, N = 1,000", Scenario(**LAYOUT | small))
    populations = [
        against_equations("K = 1 and 3, N = 100,000, t <= 0.1, against the equations", Scenario(**LARGE | small)),
        layout,
        layout.gaussian("Gaussian, with the covariance of these"),
        against_mean(
            "stored examples, N = 50: Hebb, MinOver",
            StoredExamples(**STORED | ({"learner": "hebb", "seeds": 64} if tiny else {})),
        ),
    ]
    heads = ["simulation", "seeds", "sweeps", "beyond the bound", "beyond Bonferroni's", "values", "independent"]
    rows = [exceeded(of, count, trials) for of in populations for count in counts]
    timing.table("Right theory", [*heads, "bound", "seeds that can judge"], rows)
    predicted = 1 if tiny else PREDICTED_TRIALS
    rows = exceeded_of_predicted(Scenario(**PREDICTED | small | {"seeds": predicted * max(FEWER)}), predicted)
    timing.table("Right theory, predicted errors", ["seeds", "sweeps", "beyond the bound", "values", "bound"], rows)
    heads = ["variable", "seeds", "sweeps", "found", "largest deviation, at least"]
    timing.table("Theory 3 % too large, N = 10,000", heads, found(Scenario(**PLANTED | small), 64, planted))


if __name__ == "__main__":
    main()
