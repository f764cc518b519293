"""Figure 2 of Miyoshi, Hara & Okada: effect of the number of students in a perceptron ensemble.

The gain lies between the gains of the two other rules. The weight mean gains more than the vote.
"""

from figures.published.online.ensemble_panels import RULE_CAPTION, draw_rule_panels

SWEEP_AXES = ("rule", "K")  # sweep axes that this figure shows
CAPTION = RULE_CAPTION
draw = draw_rule_panels
