r"""Minimisers of a loss with a penalty at finite N, each with a certificate of its distance from the minimum.

| loss | penalty | method |
|---|---|---|
| smooth, its curvature may jump | l2 | Newton's in min(N, P) dimensions (`newton`) |
| with kinks, or any | any, or one with l1 | interior points (`interior_point`) |
| any | a vanishing one | the least penalty among the minima of the loss (`vanishing`) |

For random inputs of many dimensions conjugate gradients, in place of factored matrices, and message passing, in place
of interior points, are faster. They are tried first, and taken if the certificate of what they find holds. Once the
signs of the weights stay, the equations that they leave may cost less than the other steps (`active_set`).
"""
