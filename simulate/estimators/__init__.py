"""Learners as scikit-learn estimators: `from simulate.learners import SparsePerceptron`."""

from statmech.runtime.extras import require

require("an estimator", "estimators", "sklearn", "numba")
