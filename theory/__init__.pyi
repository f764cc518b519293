# The public names of theory and where they are defined: read at run time, too (`theory/__init__.py`).

from .convex.bayes_optimal import bayes_overlap as bayes_overlap
from .convex.bayes_optimal import state_evolution as state_evolution
from .convex.best_lambda import best_lambda as best_lambda
from .convex.thresholds import l1_recovery as l1_recovery
from .convex.thresholds import separability as separability
from .convex.thresholds import transitions as transitions
from .networks.hitting_times import hitting_time as hitting_time
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
from .stored_examples.learning_curves_and_bounds import capacity as capacity
from .stored_examples.learning_curves_and_bounds import learning_curves as learning_curves
from .stored_examples.learning_curves_and_bounds import mistake_bound as mistake_bound
from .stored_examples.learning_curves_and_bounds import noisy_capacity as noisy_capacity
from .stored_examples.learning_curves_and_bounds import separable_fraction as separable_fraction
