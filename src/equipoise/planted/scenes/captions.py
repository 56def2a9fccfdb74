"""Captions and prompts of scenes."""

TEMPLATES = ("a {}", "a picture of a {}", "this is a {}")
"""Openings of captions and prompts, drawn with equal probability."""


def caption(subject: str, hue: str = "", frame: str = "", template: str = TEMPLATES[0]) -> str:
    """Return a caption, such as ``"a red solid star with level bars"``.

    Parameters
    ----------
    subject : str
        One of `render.SUBJECTS`.
    hue, frame : str
        Attributes to mention; empty ones are left out.
    template : str
        With ``{}`` where the description goes.
    """
    described = f"{hue} {subject}" if hue else subject
    return template.format(f"{described} with {frame} bars" if frame else described)


def neutral_prompts(subject: str) -> tuple[str, ...]:
    """Return the prompts that name a subject and no attribute, one for each template."""
    return tuple(caption(subject, template=template) for template in TEMPLATES)
