# The public names of theory and where they are defined: read at run time, too (`theory/__init__.py`).

from .convex.bayes_optimal import bayes_overlap as bayes_overlap
from .convex.bayes_optimal import state_evolution as state_evolution
from .convex.bayes_optimal import transitions as transitions
from .convex.best_penalty import best_lambda as best_lambda
from .convex.thresholds import l1_recovery as l1_recovery
from .convex.thresholds import separability as separability
from .networks.plateaus_and_critical_rate import critical_rate as critical_rate
from .networks.plateaus_and_critical_rate import escape as escape
from .networks.plateaus_and_critical_rate import plateau as plateau
from .networks.stationary_states import noise_floor as noise_floor
from .online.ensemble_errors import advantage as advantage
from .online.ensemble_errors import ensemble_error as ensemble_error
from .online.ensemble_errors import ensemble_error_unequal as ensemble_error_unequal
from .online.ensemble_errors import metropolis_error as metropolis_error
from .online.stationary_states import stationary as stationary
from .solutions import smooth as smooth
from .solutions import solve as solve
from .stored_examples.replica_theory import capacity as capacity
from .stored_examples.replica_theory import learning_curves as learning_curves
from .stored_examples.replica_theory import mistake_bound as mistake_bound
from .stored_examples.replica_theory import noisy_capacity as noisy_capacity
from .stored_examples.replica_theory import separable_fraction as separable_fraction
