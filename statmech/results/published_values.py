"""Tables 1 and 2 of Jackson & Craven, Learning Sparse Perceptrons (NIPS 8, 1996).

Our copy is a scan that lost the tables' columns. The boosting and C4.5 accuracies, the entire row of votes, and the
weights of the ordinary and second-order perceptrons are certain. The scan shows the pairs (promoters, coding) of
accuracies (88.7, 69.8) and (88.2, 70.3), and of weights (41, 52) and (59, 37), without the classifiers that they belong
to. We therefore give both values. A star behind a number marks an accuracy significantly below the accuracy of
boosting. The scan shows three stars in the row of votes, next to legible numbers, one star for each C4.5 accuracy, and
one for the 71.6 of the multi-layer perceptron. The remaining six stars match the six entries of the ordinary,
second-order and pruned perceptrons in the two rows below.
"""

from __future__ import annotations

PUBLISHED_ACCURACY: dict[str, dict[str, tuple[float, ...]]] = {
    "votes": {
        "boosting": (91.5,),
        "tree": (89.2,),
        "mlp": (92.2,),
        "ordinary": (90.8,),
        "second_order": (89.2,),
        "pruned": (87.6,),
    },
    "promoters": {
        "boosting": (92.7,),
        "tree": (84.4,),
        "mlp": (90.6,),
        "ordinary": (90.0,),
        "second_order": (88.7, 88.2),
        "pruned": (88.7, 88.2),
    },
    "coding": {
        "boosting": (72.9,),
        "tree": (62.6,),
        "mlp": (71.6,),
        "ordinary": (70.7,),
        "second_order": (69.8, 70.3),
        "pruned": (69.8, 70.3),
    },
}
PUBLISHED_WEIGHT_COUNTS: dict[str, dict[str, tuple[float, ...]]] = {
    "votes": {"boosting": (12,), "mlp": (651,), "ordinary": (30,), "second_order": (450,), "pruned": (12,)},
    "promoters": {
        "boosting": (41, 59),
        "mlp": (2267,),
        "ordinary": (228,),
        "second_order": (25764,),
        "pruned": (41, 59),
    },
    "coding": {"boosting": (52, 37), "mlp": (4270,), "ordinary": (60,), "second_order": (1740,), "pruned": (52, 37)},
}
CLASSIFIERS_WORSE_THAN_BOOSTING: dict[
    str, tuple[str, ...]
] = {  # starred in Table 1: p <= 0.05, paired two-tailed t-test
    "votes": ("tree", "second_order", "pruned"),
    "promoters": ("tree", "ordinary", "second_order", "pruned"),
    "coding": ("tree", "mlp", "ordinary", "second_order", "pruned"),
}
