"""Figures of stopping boundaries and of the Attentive Perceptron."""
