"""Topics that nobody reads because their tables take nothing, in words."""

from domain.messages import ParkedTopic


def parked_sentence(parked: ParkedTopic, at: float) -> str:
    """Why nobody reads it, since when, and when it is tried again; `at` by the clock of who parked it."""
    return (
        f"{parked.topic} is parked for {max(0.0, at - parked.since):,.0f} s, and tried again in "
        f"{max(0.0, parked.until - at):,.0f} s: {parked.reason}"
    )
