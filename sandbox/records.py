"""The records that the load generator writes: JSON that hardly compresses, the same ones for the same seed."""

import base64
import json
import random
from collections.abc import Iterator

from domain.partitions import TopicPartition

_FILLER_BYTES = (300, 650)
"""Random bytes in a record: with the rest of it, and as base64, 0.5 to 1 KB."""

_USERS = 10_000


def records(partition: TopicPartition, seed: int) -> Iterator[tuple[bytes, bytes]]:
    """The keys and values of a partition, without end; `number` counts them from 0."""
    chance = random.Random(f"{seed}/{partition}")
    number = 0
    while True:
        user = f"user-{chance.randrange(_USERS)}"
        value = {
            "number": number,
            "user": user,
            "amount": chance.randrange(100, 100_000) / 100,
            "filler": base64.b64encode(chance.randbytes(chance.randint(*_FILLER_BYTES))).decode(),
        }
        yield user.encode(), json.dumps(value).encode()
        number += 1
