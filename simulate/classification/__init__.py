"""Simulation of classifiers on real data, with scikit-learn estimators in `estimators`."""
