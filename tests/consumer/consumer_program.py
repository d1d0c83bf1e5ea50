"""A consumer as a process of its own: its arguments are one JSON object, the arguments of `run`."""

import json
import signal
import sys
import threading

from consumer.runner import run
from consumer.settings import ConsumerSettings

if __name__ == "__main__":
    arguments = json.loads(sys.argv[1])
    stop = threading.Event()
    signal.signal(signal.SIGTERM, lambda *_: stop.set())
    run(**arguments | {"settings": ConsumerSettings(**arguments["settings"]), "stop": stop})
