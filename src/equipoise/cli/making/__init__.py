"""What `equipoise counterfactuals` is configured by."""
