"""Audits of counterfactual sets: the groups that neutral prompts rank first, all else equal."""
