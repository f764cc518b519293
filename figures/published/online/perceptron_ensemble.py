"""Figure 2 of Miyoshi, Hara & Okada: effect of the number of students in a perceptron ensemble.

The gain lies between the gains of the two other rules. The weight mean gains more than the vote.
"""

from figures.published.online.ensemble_panels import ENSEMBLE_GAIN_CAPTION, draw_gain_panel_per_rule

AXES = ("rule", "K")  # sweep axes that this figure shows
CAPTION = ENSEMBLE_GAIN_CAPTION
draw = draw_gain_panel_per_rule
