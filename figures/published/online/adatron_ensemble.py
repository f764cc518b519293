"""Figure 3 of Miyoshi, Hara & Okada: number of students and effect of the ensemble in AdaTron learning.

The gain is the largest, as AdaTron students stay different for the longest time.
"""

from figures.published.online.ensemble_panels import RULE_CAPTION, draw_rules

AXES = ("rule", "K")  # sweep axes that this figure shows
CAPTION = RULE_CAPTION
draw = draw_rules
