"""The node of the tests, and what its images stand for."""

import os
import sys
from pathlib import Path

from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.process_kubelet import ProcessKubelet

SLEEPS = "import signal, sys, time; signal.signal(signal.SIGTERM, lambda *_: sys.exit(0)); time.sleep(600)"
CLINGS = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('up', flush=True); time.sleep(600)"
ENDS = "import sys; sys.exit(3)"


def a_node(control_plane: ControlPlane, folder: Path) -> ProcessKubelet:
    """A node on which `kcga:local` and `kcga:next` are this code, and some images small programs; others cannot be
    had."""
    kcga = [sys.executable, "-m", "cli.main"]
    programs = {"sleeps": SLEEPS, "clings": CLINGS, "ends": ENDS}
    path = os.pathsep.join([str(Path(__file__).parents[2]), *filter(None, [os.environ.get("PYTHONPATH")])])
    return ProcessKubelet(
        control_plane.client(),
        server=(control_plane.host, control_plane.port),
        folder=folder,
        images={
            "kcga:local": kcga,
            "kcga:next": kcga,
            **{image: [sys.executable, "-c", program] for image, program in programs.items()},
        },
        environment={"PATH": os.environ["PATH"], "PYTHONPATH": path},
    )
