"""Figure 1 of Miyoshi, Hara & Okada: effect of the number of students in a Hebbian ensemble.

The gain is small, as all students move similarly and q increases faster than R.
"""

from figures.published.online.ensemble_panels import ENSEMBLE_GAIN_CAPTION, draw_gain_panel_per_rule

AXES = ("rule", "K")  # sweep axes that this figure shows
CAPTION = ENSEMBLE_GAIN_CAPTION
draw = draw_gain_panel_per_rule
