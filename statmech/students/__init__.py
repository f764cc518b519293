"""Rules, learners, activations, and errors of ensembles and networks."""
