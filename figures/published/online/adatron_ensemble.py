"""Figure 3 of Miyoshi, Hara & Okada: effect of the number of students in an AdaTron ensemble.

The gain is the largest of the three rules, as AdaTron students stay different for the longest time.
"""

from figures.published.online.ensemble_panels import ENSEMBLE_GAIN_CAPTION, draw_gain_panel_per_rule

AXES = ("rule", "K")  # sweep axes that this figure shows
CAPTION = ENSEMBLE_GAIN_CAPTION
draw = draw_gain_panel_per_rule
