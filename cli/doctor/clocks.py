"""Whether the components' clocks agree, by what arrives while one listens: they are shown, and decide nothing."""

import time
from collections.abc import Iterator, Mapping

from app import figures
from app.errors import KcgaError
from app.settings import Settings
from app.tail import tail
from cli.doctor.finding import Finding
from domain.group_view.clocks import TOLERATED_S, Clocks, Sender, apart
from domain.messages import MessageError, WriteSpeedReport, decode_to_controller
from domain.topics import CONTROLLER_PARTITION

LISTEN_S = 5.0
"""All that are alive speak several times meanwhile, where the monitor's interval is an ordinary one."""
MOST_NAMED = 5
REMEDY = "have NTP set it (chrony, systemd-timesyncd); nothing is decided by it, but times that are shown do not fit"


def check_clocks(settings: Settings) -> Iterator[Finding]:
    try:
        ahead_s = _heard(settings)
    except KcgaError:
        return  # what is wrong with Kafka is found by another check
    yield from compared(ahead_s)


def compared(ahead_s: Mapping[Sender, float]) -> Iterator[Finding]:
    """What is to be said of clocks that are ahead of this machine's by so much.

    Right is what most clocks say, this machine's among them; its own where as many say something else.
    """
    if not ahead_s:
        yield Finding(f"no component spoke within {LISTEN_S:g} s: there are no clocks to compare")
        return
    clocks = (0.0, *ahead_s.values())
    right = max(clocks, key=lambda one: sum(abs(one - other) <= TOLERATED_S for other in clocks))
    others = "this machine's"
    if abs(right) > TOLERATED_S:
        others = "most others"
        yield Finding.note(f"this machine's clock is {_off(-right)} most others", REMEDY)
    wrong = apart({sender: ahead - right for sender, ahead in ahead_s.items()})
    for sender, off_s in list(wrong.items())[:MOST_NAMED]:
        yield Finding.note(f"the clock of {sender} is {_off(off_s)} {others}", REMEDY)
    if len(wrong) > MOST_NAMED:
        yield Finding.note(f"so are {figures.plural(len(wrong) - MOST_NAMED, 'clock')} more", REMEDY)
    if not wrong and others == "this machine's":
        count = figures.plural(len(ahead_s), "component")
        yield Finding(f"the clocks of {count} and of this machine are within {TOLERATED_S:g} s of one another")


def _off(ahead_s: float) -> str:
    return f"{abs(ahead_s):,.0f} s {'ahead of' if ahead_s > 0 else 'behind'}"


def _heard(settings: Settings) -> Mapping[Sender, float]:
    """How far the clocks of all who speak while one listens are ahead of this machine's."""
    names, clocks = settings.topics, Clocks()
    partitions = ((names.write_speed, 0), (names.metadata, CONTROLLER_PARTITION))
    with tail(settings) as reader:
        for record in reader.arriving(*partitions, within_s=LISTEN_S):
            at = time.time()
            try:
                decode = WriteSpeedReport.decode if record.topic() == names.write_speed else decode_to_controller
                message = decode(record.value())
            except MessageError:
                continue
            if message.is_of(settings.kafka.group):
                clocks.heard(message, at)
    return clocks.ahead_s(time.time())
