"""Audits of generation: what filters keep of counterfactual sets, and whose images they reject."""
