"""Figure 2 of Miyoshi, Hara & Okada: number of students and effect of the ensemble in perceptron learning.

The gain lies between the other two; the weight mean gains more than the vote.
"""

from figures.published.online.ensemble_panels import RULE_CAPTION, draw_rules

AXES = ("rule", "K")  # of the sweep, that this figure shows
CAPTION = RULE_CAPTION
draw = draw_rules
