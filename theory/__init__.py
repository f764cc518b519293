"""Solves a scenario for N -> infinity: order-parameter equations, replica theory, and the errors of ensembles."""

from statmech.errors import SolverError as SolverError
from theory.convex.best_penalty import best_lambda as best_lambda
from theory.convex.state_evolution import bayes_overlap as bayes_overlap
from theory.convex.state_evolution import state_evolution as state_evolution
from theory.convex.state_evolution import transitions as transitions
from theory.convex.thresholds import l1_recovery as l1_recovery
from theory.convex.thresholds import separability as separability
from theory.dense_lines import smooth as smooth
from theory.ensembles.advantage import advantage as advantage
from theory.ensembles.errors import ensemble_error as ensemble_error
from theory.ensembles.errors import ensemble_error_unequal as ensemble_error_unequal
from theory.ensembles.metropolis import metropolis_error as metropolis_error
from theory.networks.escape import escape as escape
from theory.networks.noise_floor import noise_floor as noise_floor
from theory.networks.plateaus import critical_rate as critical_rate
from theory.networks.plateaus import plateau as plateau
from theory.online.stationary import stationary as stationary
from theory.solve import solve as solve
from theory.stored_examples.learning_curves import learning_curves as learning_curves
from theory.stored_examples.learning_curves import separable_fraction as separable_fraction
from theory.stored_examples.mistakes import mistake_bound as mistake_bound
from theory.stored_examples.replica import capacity as capacity
from theory.stored_examples.replica import noisy_capacity as noisy_capacity
