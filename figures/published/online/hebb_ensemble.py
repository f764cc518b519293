"""Figure 1 of Miyoshi, Hara & Okada: number of students and effect of the ensemble in Hebbian learning.

The gain is small: all students move alike, and q increases faster than R.
"""

from functools import partial

from figures.published.online.ensemble_panels import RULE_CAPTION, draw_rule

AXES = ("rule", "K")  # of the sweep, that this figure shows
CAPTION = RULE_CAPTION
draw = partial(draw_rule, rule="hebb")
