"""Parameters of classes, functions of time, and task protocols."""
