"""The controller on Kubernetes: it waits until it holds the Lease of its group, then has a fleet of Deployments."""

import socket
import threading
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from app.errors import KcgaError, UsageError
from app.revision import revision_of
from app.settings import Settings
from controller.kubernetes.api import KubernetesError, connect, find_owner, own_namespace
from controller.kubernetes.decide.deployment import TemplateError, read_template
from controller.kubernetes.election import Election
from controller.kubernetes.fleet import KubernetesFleet


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
    template = file.resolve().parent / set_up.template
    try:
        read_template(template)
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
                template=lambda: read_template(template),
                settings=lambda: revision_of(file),
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
