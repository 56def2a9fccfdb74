"""Retrieval: whom a ranking of images shows first, and how similarity differs between groups.

Parameters of every ranking metric:

desired : "pool", "uniform" or mapping of group name to share
    Share that each group should have: its share of the pool, equal shares of the groups in the
    pool, or the shares of the mapping. Where "pool" and "uniform" differ, `.by` has both.
queries : array-like, optional
    With scores (queries, n): names of the queries. With scores (n,): the query whose pool each
    item belongs to, such as the subject that the image shows.
within : array-like (n,), mapping of str to array-like, or Groups, optional
    Marginals: every value of this attribute has a pool of its own, per query.
sets : array-like (n,), optional
    Counterfactual set of each item: images that share all but the attributes. Chance level and
    p-value are then those of a random order of the members within each set. `.by` has those of a
    random order of the pool.
units : array-like (n,), optional
    Unit of each item that repeats, such as the person shown. Without sets, items of a unit
    exchange their group as one where they have one group.
subjects : array-like, optional
    Subject of each query, shaped as `queries`: queries of a subject are resampled together.
resampling, rng
    See `equipoise.metrics`.
"""
