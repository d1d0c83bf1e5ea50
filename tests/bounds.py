"""Which numbers of a JSON schema have no bounds."""

from collections.abc import Iterator
from typing import Any


def unbounded(schema: Any, path: str = "", *, below: bool = True) -> Iterator[str]:
    """The places of the numbers that have no upper bound or, with `below`, no lower one."""
    if isinstance(schema, list):
        for index, part in enumerate(schema):
            yield from unbounded(part, f"{path}/{index}", below=below)
    if not isinstance(schema, dict):
        return
    if schema.get("type") in ("integer", "number") and not {"const", "enum"} & schema.keys():
        lowest, highest = {"minimum", "exclusiveMinimum"}, {"maximum", "exclusiveMaximum"}
        if not highest & schema.keys() or (below and not lowest & schema.keys()):
            yield path
    for name, part in schema.items():
        yield from unbounded(part, f"{path}/{name}", below=below)
