"""Figure 1 of Miyoshi, Hara & Okada: effect of the number of students in a Hebbian ensemble.

The gain is small, as all students move similarly and q increases faster than R.
"""

from figures.published.online.ensemble_panels import RULE_CAPTION, draw_rule_panels

SWEEP_AXES = ("rule", "K")  # sweep axes that this figure shows
CAPTION = RULE_CAPTION
draw = draw_rule_panels
