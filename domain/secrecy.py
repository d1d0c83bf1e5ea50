"""What is secret, and how text that may hold some is shown: by names and by forms, wherever the text comes from.

Names are those of settings of kcga, of librdkafka and of Spark, and of parameters of URLs.
"""

import re
from collections.abc import Mapping
from typing import Any

MASK = "***"

# Every repetition is bounded or of what the next part cannot begin with: text from anywhere is searched in linear time.
_WORD = (
    r"(?:password|passwd|pwd|passphrase|secret|token|credential|jaas\.config|key\.pem|auth\.user\.info"
    r"|(?:access|account|api|encryption|master|private)[._-]?key)"
)
_WHERE = ("location", "file", "path", "url", "uri", "provider", "class", "name")
"""Ends of names: what says where a secret is, or whose, is none."""
_REST = r"[\w.-]{0,80}" + "".join(f"(?<!{end})" for end in _WHERE)
_NAME = re.compile(rf"{_WORD}{_REST}\Z", re.IGNORECASE)
_NAMED = re.compile(
    rf"""({_WORD}{_REST}(?:\s{{0,4}}=\s{{0,4}}|["']\s{{0,4}}[:=]\s{{0,4}}))("[^"]*"?|'[^']*'?|[^\s;&,"'}}\])]+)""",
    re.IGNORECASE,
)
"""`password=...`, `"sasl.password": "..."`, `;token=...`."""
_USER = re.compile(r"(://[^/\s:@]{0,256}):[^/\s@]{1,1024}@")
"""`scheme://user:password@host`; a user alone is none: Azure has containers there."""
_BEARER = re.compile(r"(\bbearer\s{1,4})[\w.~+/=-]{8,}", re.IGNORECASE)
_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----(?:[^-]|-(?!----END))*(?:-----END[A-Z ]{0,40}-----)?"
)


def is_secret(name: str) -> bool:
    """Whether what is called so is a secret."""
    return _NAME.search(name) is not None


def names_of_secrets() -> dict[str, Any]:
    """What `is_secret` says of a name, as a JSON schema; by expressions that know no look-behind, as Go's."""
    is_where = {"pattern": f"(?i)({'|'.join(_WHERE)})$"}
    return {"pattern": rf"(?i){_WORD}[\w.-]{{0,80}}$", "not": is_where}


def masked(text: str) -> str:
    """`text` without the secrets that can be told by what is around them."""
    # Most texts have none of these characters, and need not be searched.
    if "://" in text:
        text = _USER.sub(rf"\1:{MASK}@", text)
    if "-----BEGIN" in text:
        text = _PRIVATE_KEY.sub(MASK, text)
    if "bearer" in text.lower():
        text = _BEARER.sub(rf"\g<1>{MASK}", text)
    if "=" in text or '"' in text or "'" in text:
        text = _NAMED.sub(rf"\g<1>{MASK}", text)
    return text


def redacted(value: Any, name: str = "") -> Any:
    """`value`, which is called `name`, with masks in place of secrets; what is no text, number or table as text."""
    if isinstance(value, Mapping):
        return {str(each): redacted(inner, str(each)) for each, inner in value.items()}
    if isinstance(value, list | tuple | set | frozenset):
        return [redacted(inner, name) for inner in value]
    if value is None or isinstance(value, bool | int | float):
        return value
    return MASK if is_secret(name) else masked(str(value))
