"""Learners of fresh rows, predicted from a table of data that is a sample of their population, with nothing fitted."""
