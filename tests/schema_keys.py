"""The keys of a schema."""


def schema_keys(schema):
    """Return every key of a schema and of its sections."""
    json_schema = schema.model_json_schema()
    parts = (json_schema, *json_schema.get("$defs", {}).values())
    return {key for part in parts for key in part.get("properties", {})}
