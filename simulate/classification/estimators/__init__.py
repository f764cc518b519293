"""Learners as scikit-learn estimators: `from simulate.learners import SparsePerceptron`."""

from statmech.runtime.installed_packages import require_modules

require_modules("an estimator", "estimators", "sklearn", "numba")
