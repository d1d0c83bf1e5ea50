"""Text from elsewhere that is shown: a terminal acts on some characters, and shows nothing of others."""


def printable(text: str) -> str:
    """`text`; what is not to be seen of it, or would move the cursor, as an escape such as `\\x1b`."""
    if text.isprintable():
        return text
    return "".join(each if each.isprintable() else each.encode("unicode_escape").decode() for each in text)
