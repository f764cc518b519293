"""Order-parameter equations of online learning."""
