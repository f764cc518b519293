"""Parameters of classes, functions of time, and protocols of tasks."""
