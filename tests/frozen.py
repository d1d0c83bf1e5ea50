"""States of machines as bytes, for explorations that go back to them."""

import io
import pickle
from types import MappingProxyType
from typing import Any


class Freezer:
    """Freezes and thaws values.

    Args:
        constants: what is the same in all of them and is not copied.
    """

    def __init__(self, *constants: object) -> None:
        _CONSTANTS.update((id(each), each) for each in constants)

    def frozen(self, value: object) -> bytes:
        text = io.BytesIO()
        _Pickler(text, pickle.HIGHEST_PROTOCOL).dump(value)
        return text.getvalue()

    def thawed(self, frozen: bytes) -> Any:
        return pickle.loads(frozen)  # noqa: S301 (it is this process that has frozen it)


_CONSTANTS: dict[int, object] = {}
"""Of all freezers; as they are kept, no other value has such an id."""


class _Pickler(pickle.Pickler):
    def reducer_override(self, value: object) -> Any:
        if id(value) in _CONSTANTS:
            return _constant, (id(value),)
        return (_proxy, (dict(value),)) if isinstance(value, MappingProxyType) else NotImplemented


def _constant(number: int) -> object:
    return _CONSTANTS[number]


def _proxy(values: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(values)
