"""The docs site: `make docs`. Pages are MyST Markdown and notebooks, executed as it is built; a warning is an error."""

import statmech

project = "statmech"
author = copyright = "The statmech developers"
release = version = statmech.__version__

extensions = ["myst_nb", "sphinx.ext.autodoc", "sphinx.ext.mathjax", "sphinx_design", "sphinx_copybutton"]
exclude_patterns = ["_build"]
html_theme = "furo"
html_title = "statmech"

myst_enable_extensions = ["dollarmath", "colon_fence", "deflist", "fieldlist"]
myst_heading_anchors = 3
nb_execution_mode = "force"
nb_execution_raise_on_error = True
nb_execution_timeout = 300
