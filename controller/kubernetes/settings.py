"""What an operator can set of consumers on Kubernetes."""

from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

Name = Annotated[str, Field(pattern=r"^[a-z]([a-z0-9-]{0,38}[a-z0-9])?$")]
"""So short that the names of pods, which are made of it, are not cut."""


class KubernetesSettings(BaseModel):
    """Where the consumers' Deployments are, and what they are made from."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: Name | None = None
    """What the objects of the group are named after: `NAME-consumer-3`. The consumer group's name unless set; where
    that is no name for Kubernetes (lower case letters, digits and `-`, at most 40), it has to be set."""
    namespace: Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")] | None = None
    """The controller's own unless set."""
    template: Path = Path("consumer.yaml")
    """A Deployment (YAML) that all consumers are made from; a relative path begins at the settings file's folder. Read
    anew for each consumer."""
    owner: str | None = None
    """The Deployment that the consumers belong to and are deleted with: `NAME-controller` unless set; none if empty."""
    lease_s: Annotated[int, Field(ge=3, le=300)] = 9
    """A standby takes over so long after the last sign of the controller that acts."""
