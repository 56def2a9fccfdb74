"""Keys that the YAML of pages and templates names."""

import re


def yaml_blocks(text):
    """Return the YAML blocks of a page."""
    return re.findall(r"^```yaml\n(.*?)^```", text, re.DOTALL | re.MULTILINE)


def page_keys(page):
    """Return the keys that the YAML blocks of a page name, commented or not."""
    return yaml_keys("\n".join(yaml_blocks(page)))


def yaml_keys(text):
    """Return the keys that lines of YAML name, commented or not."""
    contents = [re.sub(r"^[ #]*(- )*", "", line).partition(" #")[0] for line in text.splitlines()]
    return {
        key
        for content in contents
        for key in re.findall(r"(?:^|[{,] *)[\"']?(\w+)[\"']?:(?=\s|$)", content)
    }
