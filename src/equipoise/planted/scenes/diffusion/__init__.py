"""A small Stable Diffusion of the scenes, whose neutral prompts have planted hues and frames."""
