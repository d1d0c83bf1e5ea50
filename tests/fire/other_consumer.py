"""A controller whose consumer 1 has other variables: `python -m tests.fire.other_consumer SETTINGS NAME=VALUE ...`."""

import sys
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import patch

from app import components
from cli import main
from domain.assignment import ConsumerId


def main_program(settings: str, *variables: str) -> None:
    usual = components.consumer_command

    def consumer_command(consumer: ConsumerId, file: Path, class_name: str) -> Sequence[str]:
        begins = ["env", *variables] if consumer == 1 else []
        return [*begins, *usual(consumer, file, class_name)]

    sys.argv = ["kcga", "controller", "--settings", settings]
    with patch.object(components, "consumer_command", consumer_command):
        main.main()


if __name__ == "__main__":
    main_program(*sys.argv[1:])
