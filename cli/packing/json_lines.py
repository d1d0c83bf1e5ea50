"""On which line of a JSON text a value stands: decoders do not say."""

import json
import re
from collections.abc import Iterator, Sequence

_SPACE = re.compile(r"[ \t\n\r]*")
_DECODER = json.JSONDecoder()


def line_of(text: str, path: Sequence[str | int]) -> int | None:
    """The line, from 1, on which the value at `path` begins, or the innermost value around it that is there.

    None where `text` is not JSON as Python reads it.
    """
    try:
        at = _after_space(text, 0)
        for step in path:
            inner = next((place for name, place in _members(text, at) if name == step), None)
            if inner is None:
                break
            at = inner
    except (ValueError, IndexError, RecursionError):
        return None
    return text.count("\n", 0, at) + 1


def _members(text: str, at: int) -> Iterator[tuple[str | int, int]]:
    """The names, or indices, of what is in the object or array at `at`, and where each value begins."""
    opening = text[at]
    if opening not in "{[":
        return
    at = _after_space(text, at + 1)
    index = 0
    while text[at] not in "}]":
        name: str | int = index
        if opening == "{":
            name, at = _DECODER.raw_decode(text, at)
            at = _after_space(text, _after_space(text, at) + 1)
        yield name, at
        at = _after_space(text, _DECODER.raw_decode(text, at)[1])
        if text[at] == ",":
            at = _after_space(text, at + 1)
        index += 1


def _after_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at
