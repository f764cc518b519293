# The public names of theory and where they are defined: read at run time, too (`theory/__init__.py`).

from .convex.best_penalty import best_lambda as best_lambda
from .convex.state_evolution import bayes_overlap as bayes_overlap
from .convex.state_evolution import state_evolution as state_evolution
from .convex.state_evolution import transitions as transitions
from .convex.thresholds import l1_recovery as l1_recovery
from .convex.thresholds import separability as separability
from .dense_lines import smooth as smooth
from .ensembles.advantage import advantage as advantage
from .ensembles.errors import ensemble_error as ensemble_error
from .ensembles.errors import ensemble_error_unequal as ensemble_error_unequal
from .ensembles.metropolis import metropolis_error as metropolis_error
from .networks.escape import escape as escape
from .networks.noise_floor import noise_floor as noise_floor
from .networks.plateaus import critical_rate as critical_rate
from .networks.plateaus import plateau as plateau
from .online.stationary import stationary as stationary
from .solutions import solve as solve
from .stored_examples.learning_curves import learning_curves as learning_curves
from .stored_examples.learning_curves import separable_fraction as separable_fraction
from .stored_examples.mistakes import mistake_bound as mistake_bound
from .stored_examples.replica import capacity as capacity
from .stored_examples.replica import noisy_capacity as noisy_capacity
