"""The options of a JVM of Spark's are such as Java understands, and leave it room."""

import re
import subprocess

from app.java import Java
from consumer import jvm


def test_a_jvm_that_starts_quickly_has_as_much_room_for_compiled_code_as_any(java: Java) -> None:
    def room(*options: str) -> int:
        asked = [str(java.executable), *options, "-XX:+PrintFlagsFinal", "-version"]
        flags = subprocess.run(asked, capture_output=True, text=True, check=True).stdout
        found = re.search(r"\bReservedCodeCacheSize\s*=\s*(\d+)", flags)
        assert found, flags
        return int(found[1])

    assert room(*jvm.SAFE, *jvm.QUICK_START) >= room(*jvm.SAFE)


def test_java_has_nothing_to_say_about_them(java: Java) -> None:
    options = (*jvm.SAFE, *jvm.QUICK_START, *jvm.UNVERIFIED)
    said = subprocess.run([str(java.executable), *options, "--version"], capture_output=True, text=True, check=True)
    assert said.stderr == ""
