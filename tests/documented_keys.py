"""The keys that the YAML blocks of a page name, and the keys of a schema."""

import re


def yaml_blocks(page):
    """YAML blocks of a page, in order."""
    return re.findall(r"^```yaml\n(.*?)^```", page.read_text(encoding="utf-8"), re.DOTALL | re.M)


def yaml_keys(text):
    """Keys that lines of YAML name, commented or not."""
    contents = [re.sub(r"^[ #]*(- )*", "", line).partition(" #")[0] for line in text.splitlines()]
    return {
        key
        for content in contents
        for key in re.findall(r"(?:^|[{,] *)[\"']?(\w+)[\"']?:(?=\s|$)", content)
    }


def schema_keys(schema):
    """Every key of a schema and of its sections."""
    json_schema = schema.model_json_schema()
    parts = (json_schema, *json_schema.get("$defs", {}).values())
    return {key for part in parts for key in part.get("properties", {})}
