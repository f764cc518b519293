"""Figure 3 of Miyoshi, Hara & Okada: effect of the number of students in an AdaTron ensemble.

The gain is the largest of the three rules, as AdaTron students stay different for the longest time.
"""

from figures.published.online.ensemble_panels import RULE_CAPTION, draw_rule_panels

SWEEP_AXES = ("rule", "K")  # sweep axes that this figure shows
CAPTION = RULE_CAPTION
draw = draw_rule_panels
