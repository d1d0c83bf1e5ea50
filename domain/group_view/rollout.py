"""How far a rollout is, in words."""

from domain.messages import RolloutStanding


def rollout_sentence(rollout: RolloutStanding | None) -> str | None:
    """What an operator has to know of it; None where there is nothing to say."""
    if rollout is None:
        return None
    outdated, one = rollout.outdated, len(rollout.outdated) == 1
    left = f"{len(outdated)} consumer{'' if one else 's'} began with another image, template or settings than now"
    if rollout.failed is not None and outdated:
        return f"the rollout has stopped, as consumer {rollout.failed} did not become ready: {left}"
    if rollout.paused:
        return f"rollouts are paused: {left if outdated else 'every consumer began as they do now'}"
    if rollout.retiring is not None:
        return f"consumer {rollout.retiring} is being replaced: {left}"
    return f"a rollout waits: {left}" if outdated else None
