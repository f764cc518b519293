"""Solves a scenario for N -> infinity: order-parameter equations, replica theory, and the errors of ensembles."""

from statmech.errors import SolverError as SolverError
from theory.advantage import advantage as advantage
from theory.ensemble import ensemble_error as ensemble_error
from theory.ensemble import ensemble_error_unequal as ensemble_error_unequal
from theory.escape import escape as escape
from theory.inference import bayes_overlap as bayes_overlap
from theory.inference import state_evolution as state_evolution
from theory.inference import transitions as transitions
from theory.learning_curves import learning_curves as learning_curves
from theory.learning_curves import separable_fraction as separable_fraction
from theory.metropolis import metropolis_error as metropolis_error
from theory.mistakes import mistake_bound as mistake_bound
from theory.noise_floor import noise_floor as noise_floor
from theory.plateaus import critical_rate as critical_rate
from theory.plateaus import plateau as plateau
from theory.replica import capacity as capacity
from theory.replica import noisy_capacity as noisy_capacity
from theory.risk import best_lambda as best_lambda
from theory.separability import l1_recovery as l1_recovery
from theory.separability import separability as separability
from theory.smooth import smooth as smooth
from theory.solve import solve as solve
from theory.stationary import stationary as stationary
