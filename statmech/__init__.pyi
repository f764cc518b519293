# The public names of statmech and where they are defined, also read at run time (`statmech/__init__.py`).

import figures as figures
import simulate as simulate
import theory as theory

from .activations import ACTIVATIONS as ACTIVATIONS
from .activations import Activation as Activation
from .api import Results as Results
from .api import compare as compare
from .api import distances as distances
from .api import draw as draw
from .api import explore as explore
from .api import load_results as load_results
from .api import run as run
from .api import solve as solve
from .config import load as load
from .convex.losses import LOSSES as LOSSES
from .convex.losses import Loss as Loss
from .errors import ClusterError as ClusterError
from .errors import ConfigError as ConfigError
from .errors import ScenarioError as ScenarioError
from .errors import StatmechError as StatmechError
from .errors import StoreError as StoreError
from .learners import LEARNERS as LEARNERS
from .learning_curve import predict_learning_curve as predict_learning_curve
from .rules import RULES as RULES
from .rules import Rule as Rule
from .scenarios.attention import Attention as Attention
from .scenarios.boosting import Boosting as Boosting
from .scenarios.cross_validation import Study as Study
from .scenarios.descent import Descent as Descent
from .scenarios.gaussian_clusters import Clusters as Clusters
from .scenarios.inference import Inference as Inference
from .scenarios.initial_conditions import Start as Start
from .scenarios.labelled_rows import LabelledRows as LabelledRows
from .scenarios.network import Network as Network
from .scenarios.network_tasks import NetworkTasks as NetworkTasks
from .scenarios.online import Scenario as Scenario
from .scenarios.online_clusters import OnlineClusters as OnlineClusters
from .scenarios.online_rows import OnlineRows as OnlineRows
from .scenarios.online_tasks import OnlineTasks as OnlineTasks
from .scenarios.risk import Risk as Risk
from .scenarios.stopping import Stopping as Stopping
from .scenarios.stored_examples import StoredExamples as StoredExamples

__version__: str
