"""What anyone may send or leave lying about, for the fuzz tests; and a guard that sees what is done with it."""

import json
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.abc import MetaPathFinder
from typing import Any

from hypothesis import strategies as st

FORBIDDEN = frozenset(
    {
        "exec",
        "compile",
        "marshal.loads",
        "pickle.find_class",
        "ctypes.dlopen",
        "os.system",
        "os.exec",
        "os.posix_spawn",
        "os.fork",
        "subprocess.Popen",
        "socket.connect",
        "urllib.Request",
        "os.remove",
        "os.rename",
    }
)
"""Of Python's audit events: what, beside an import, no message and no file may bring about."""

_not_seen: dict[str, None] = {}
# A hook stays for good, and a hook in Python lets another thread run in the midst of what it audits: a thread that
# coverage follows could then not begin ("another trace function is being installed"). This one is no Python.
sys.addaudithook(_not_seen.pop)


class _Imports(MetaPathFinder):
    """Finds nothing, and keeps what it was asked for: what is loaded already is not looked for."""

    def __init__(self) -> None:
        self.modules: list[str] = []

    def find_spec(self, fullname: str, *_: object) -> None:
        self.modules.append(fullname)


@contextmanager
def nothing_carried_out() -> Iterator[None]:
    """Fails if anything forbidden happens within."""
    imports = _Imports()
    sys.meta_path.insert(0, imports)
    _not_seen.update(dict.fromkeys(FORBIDDEN))
    try:
        yield
        seen = FORBIDDEN - _not_seen.keys()
    finally:
        sys.meta_path.remove(imports)
    assert not seen, seen
    assert not imports.modules, imports.modules


TEMPTING = (
    "__import__('os').system('true')",
    "!!python/object/apply:os.system ['true']",
    "${jndi:ldap://127.0.0.1/a}",
    "{{7*7}}",
    "$(true)",
    "`true`",
    "../../etc/passwd",
    "file:///etc/passwd",
    "\x1b[31m",
    "\x00",
    "\ud800",
    "a" * 10_000,
)
"""What careless programs take for more than text."""

WORDS = st.one_of(st.sampled_from(TEMPTING), st.text(max_size=20))
NUMBERS = st.one_of(
    st.integers(-3, 3),
    st.sampled_from([2**31, 2**63, 2**64, 10**40, -(2**63) - 1]),
    st.sampled_from([1e308, -1e308, 1e-320, 0.1, float("nan"), float("inf"), float("-inf")]),
)
VALUES = st.recursive(
    st.one_of(st.none(), st.booleans(), NUMBERS, WORDS),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(WORDS, inner, max_size=3)),
    max_leaves=8,
)


@st.composite
def altered(draw: st.DrawFn, valid: Any) -> Any:
    """`valid` JSON in which one or two values, anywhere in it, are left out, doubled, or others."""
    value = json.loads(json.dumps(valid))
    for _ in range(draw(st.integers(1, 2))):
        value = draw(_altered_once(value))
    return value


@st.composite
def _altered_once(draw: st.DrawFn, value: Any) -> Any:
    if not isinstance(value, dict | list) or not value or draw(st.integers(0, 3)) == 0:
        return draw(VALUES)
    if isinstance(value, list):
        index = draw(st.integers(0, len(value) - 1))
        if draw(st.integers(0, 4)) == 0:
            return [*value, value[index]]
        return [*value[:index], draw(_altered_once(value[index])), *value[index + 1 :]]
    key = draw(st.sampled_from(sorted(value)))
    if draw(st.integers(0, 4)) == 0:
        return {name: each for name, each in value.items() if name != key}
    return {**value, key: draw(_altered_once(value[key]))}


def as_bytes(value: Any) -> bytes:
    """JSON, with what JSON does not have as most programs write it: NaN, Infinity, half of a surrogate pair."""
    return json.dumps(value).encode()


@st.composite
def damaged(draw: st.DrawFn, data: bytes) -> bytes:
    """`data`, cut off, or with some bytes in its midst that are others."""
    begin = draw(st.integers(0, len(data)))
    if draw(st.booleans()):
        return data[:begin]
    end = draw(st.integers(begin, min(len(data), begin + 8)))
    return data[:begin] + draw(st.binary(max_size=8)) + data[end:]
