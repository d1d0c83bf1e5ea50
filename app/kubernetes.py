"""The controller on Kubernetes: it waits until it holds the Lease of its group, then has a fleet of Deployments."""

import socket
import threading
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from app.errors import KcgaError, UsageError
from app.revision import revisions_of
from app.settings import Settings
from consumer.settings import ClassSettings
from controller.kubernetes.api import KubernetesError, connect, find_owner, own_namespace
from controller.kubernetes.decide.deployment import Template, TemplateError, read_template, with_resources
from controller.kubernetes.election import Election
from controller.kubernetes.fleet import KubernetesFleet
from domain.consumer_class import ORDINARY


@dataclass(frozen=True, slots=True)
class Templates:
    """What consumers are made from, as it is now."""

    folder: Path
    """Where relative paths begin."""
    usual: Path
    classes: Sequence[ClassSettings]

    def __call__(self, class_name: str) -> Template:
        """Of a class; of an ordinary consumer where there is none of that name any more.

        Raises:
            TemplateError: it cannot be read, is no Deployment, or sets what the controller decides.
        """
        found = next((each for each in self.classes if each.name == class_name), None)
        template = read_template(self.folder / (found.template if found and found.template else self.usual))
        return with_resources(template, found.resources) if found and found.resources else template

    def require_all(self) -> None:
        """Each is right.

        Raises:
            TemplateError: one is not.
        """
        for name in (ORDINARY, *(each.name for each in self.classes)):
            self(name)


@contextmanager
def on_kubernetes(
    settings: Settings, file: Path, stop: threading.Event, stands_by: Callable[[], None]
) -> Iterator[KubernetesFleet | None]:
    """The fleet of the group, as soon as this controller holds the Lease; None where `stop` is set before.

    Args:
        settings: of the group.
        file: that they are from.
        stop: is set when another one takes the Lease, too.
        stands_by: is called again and again while the Lease is another one's.

    Raises:
        UsageError: the template is wrong.
        KcgaError: the cluster cannot be used, or another controller has taken the Lease.
    """
    set_up, group = settings.kubernetes, settings.kafka.group
    name = set_up.named_after(group)
    template = Templates(file.resolve().parent, set_up.template, settings.consumer.classes)
    try:
        template.require_all()
        api = connect()
        namespace = set_up.namespace or own_namespace() or "default"
        owner = find_owner(api, namespace, set_up.owner) if set_up.owner else None
        with ExitStack() as stack:
            election = Election(
                api,
                namespace=namespace,
                name=set_up.lease,
                identity=f"{socket.gethostname()}_{uuid.uuid4().hex}",
                lease_s=set_up.lease_s,
                on_lost=stop.set,
            )
            stack.callback(election.give_back)
            if not election.win(stop, stands_by):
                yield None
                return
            fleet = KubernetesFleet(
                api,
                namespace=namespace,
                group=name,
                template=template,
                settings=lambda: revisions_of(file),
                owner=owner,
                may_act=lambda: election.may_act,
            )
            stack.callback(fleet.close)
            yield fleet
        if election.lost:
            raise KcgaError("another controller has taken the lease of this group: this one ends")
    except TemplateError as error:
        raise UsageError(str(error)) from error
    except KubernetesError as error:
        raise KcgaError(str(error)) from error
