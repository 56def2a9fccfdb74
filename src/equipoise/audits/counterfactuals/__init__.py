"""Audits of counterfactual sets: whom neutral prompts show first, all else equal."""
