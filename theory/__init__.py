"""Solves a scenario: order-parameter equations, Gaussian integrals, and what an ensemble of students makes of them."""

from theory.ensemble import ensemble_error as ensemble_error
from theory.ensemble import ensemble_error_unequal as ensemble_error_unequal
from theory.online import SolverError as SolverError
from theory.solve import solve as solve
