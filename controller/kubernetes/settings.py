"""What an operator can set of consumers on Kubernetes."""

import re
from pathlib import Path
from typing import Annotated

from pydantic import BaseModel, ConfigDict, Field

NAME = re.compile(r"[a-z]([a-z0-9-]{0,38}[a-z0-9])?")
"""What objects can be named after: so short that the names of pods, which are made of it, are not cut."""


class KubernetesSettings(BaseModel):
    """Where the consumers' Deployments are, and what they are made from."""

    model_config = ConfigDict(frozen=True, extra="forbid", use_attribute_docstrings=True)

    name: Annotated[str, Field(pattern=f"^{NAME.pattern}$")] | None = None
    """What the objects of the group are named after: `NAME-consumer-3`. The consumer group's name unless set; where
    that is no name for Kubernetes (lower case letters, digits and `-`, at most 40), it has to be set."""
    namespace: Annotated[str, Field(pattern=r"^[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?$")] | None = None
    """The namespace of the consumers' Deployments; the controller's own unless set."""
    template: Path = Path("consumer.yaml")
    """A Deployment (YAML) that all consumers are made from; a relative path begins at the settings file's folder. Read
    anew for each consumer."""
    owner: str = "kcga-controller"
    """The controller's Deployment. Consumers belong to it and are deleted with it, and run its image where the template
    names none; they belong to nothing if it is empty."""
    lease: Annotated[str, Field(min_length=1)] = "kcga-controller"
    """The Lease of the controllers of this group."""
    lease_s: Annotated[int, Field(ge=3, le=300)] = 9
    """A standby takes over so long after the last sign of the controller that acts."""

    def named_after(self, group: str) -> str:
        """What the objects of the consumer group are named after."""
        return self.name or group
