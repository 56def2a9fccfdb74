"""Audits of generation: kept counterfactual sets, and rejections by group."""
