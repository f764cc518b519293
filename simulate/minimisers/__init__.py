r"""Minimisers of a loss with a penalty at finite N, each with a certificate of its distance from the minimum.

| loss | penalty | method |
|---|---|---|
| smooth, its curvature may jump | l2 | Newton's in min(N, P) dimensions (`newton`) |
| with kinks, or any | any, or one with l1 | interior points (`minimise_by_interior_point`) |
| any | a vanishing one | the smallest penalty among the minima of the loss (`vanishing_penalty`) |

For random inputs of many dimensions conjugate gradients are faster than factored matrices, and message passing is
faster than interior points. They are tried first, and their result is used if its certificate holds. Once the signs of
the weights no longer change, solving the remaining equations may cost less than further steps (`active_set`).
"""
