# The public names of statmech and where they are defined, also read at run time (`statmech/__init__.py`).

import figures as figures
import simulate as simulate
import theory as theory

from .api import Results as Results
from .api import compare as compare
from .api import distances as distances
from .api import draw as draw
from .api import explore as explore
from .api import load_results as load_results
from .api import run as run
from .api import solve as solve
from .classification.attentive_perceptron import Attention as Attention
from .classification.boosting import Boosting as Boosting
from .classification.cross_validation import Study as Study
from .classification.random_walks import Stopping as Stopping
from .config.config_files import load as load
from .convex.losses import LOSSES as LOSSES
from .convex.losses import Loss as Loss
from .errors import ClusterError as ClusterError
from .errors import ConfigError as ConfigError
from .errors import ScenarioError as ScenarioError
from .errors import StatmechError as StatmechError
from .errors import StoreError as StoreError
from .keys.initial_states import Start as Start
from .kinds.bayes_inference import Inference as Inference
from .kinds.empirical_risk import Risk as Risk
from .kinds.fixed_length_network import FixedLengthNetwork as FixedLengthNetwork
from .kinds.gradient_descent import Descent as Descent
from .kinds.moving_teacher import MovingTeacher as MovingTeacher
from .kinds.network import Network as Network
from .kinds.network_tasks import NetworkTasks as NetworkTasks
from .kinds.online_clusters import OnlineClusters as OnlineClusters
from .kinds.online_perceptron import Scenario as Scenario
from .kinds.online_table import OnlineRows as OnlineRows
from .kinds.online_tasks import OnlineTasks as OnlineTasks
from .kinds.risk_clusters import Clusters as Clusters
from .kinds.risk_generations import Generations as Generations
from .kinds.risk_table import LabelledRows as LabelledRows
from .kinds.stored_examples import StoredExamples as StoredExamples
from .learning_curve import predict_learning_curve as predict_learning_curve
from .students.activations import ACTIVATIONS as ACTIVATIONS
from .students.activations import Activation as Activation
from .students.learners import LEARNERS as LEARNERS
from .students.rules import RULES as RULES
from .students.rules import Rule as Rule

__version__: str
