r"""Minimisers of a loss with a penalty at finite N, each with a certificate of its distance from the minimum.

| loss | penalty | method |
|---|---|---|
| smooth, its curvature may jump | l2 | Newton's in min(N, P) dimensions (`newton`) |
| with kinks, or any | any, or one with l1 | interior points (`interior_point`) |
| any | a vanishing one | the least penalty among the minima of the loss (`vanishing`) |
"""
