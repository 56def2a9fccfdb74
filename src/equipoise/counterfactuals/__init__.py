"""Images that differ in social attributes alone: from captions to sets that can be probed."""

from equipoise.counterfactuals.captions import CaptionSets, caption_sets, howard_2024

__all__ = ["CaptionSets", "caption_sets", "howard_2024"]
