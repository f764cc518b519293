"""Learners as scikit-learn estimators: `from simulate.learners import SparsePerceptron`."""
