"""Order-parameter equations of students who learn online."""
