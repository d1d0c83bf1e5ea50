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
        self._constants = constants

    def frozen(self, value: object) -> bytes:
        text = io.BytesIO()
        _Pickler(text, self._constants).dump(value)
        return text.getvalue()

    def thawed(self, frozen: bytes) -> Any:
        return _Unpickler(io.BytesIO(frozen), self._constants).load()


class _Pickler(pickle.Pickler):
    def __init__(self, file: io.BytesIO, constants: tuple[object, ...]) -> None:
        super().__init__(file, pickle.HIGHEST_PROTOCOL)
        self._places = {id(each): place for place, each in enumerate(constants)}

    def persistent_id(self, value: object) -> int | None:
        return self._places.get(id(value))

    def reducer_override(self, value: object) -> Any:
        return (_proxy, (dict(value),)) if isinstance(value, MappingProxyType) else NotImplemented


class _Unpickler(pickle.Unpickler):
    def __init__(self, file: io.BytesIO, constants: tuple[object, ...]) -> None:
        super().__init__(file)
        self._constants = constants

    def persistent_load(self, place: int) -> object:
        return self._constants[place]


def _proxy(values: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(values)
