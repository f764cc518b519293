"""Walks with early stopping, and the Attentive Perceptron."""
