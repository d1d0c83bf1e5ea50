"""How a JVM is told to run Spark for consumers, whether it is a server's or of a consumer's own."""

import shlex

OPTIONS = "spark.driver.extraJavaOptions"
"""What Spark calls the options of its JVM."""

SAFE = (
    "-XX:+UseSerialGC",
    "-XX:+ExitOnOutOfMemoryError",  # or it would hang, and its clients with it
)

QUICK_START = (
    "-XX:TieredStopAtLevel=1",
    # That alone leaves 48 MB for compiled code; Spark fills them in a minute, and from then on is slow, or fails with
    # "no such method: java.lang.invoke.MethodHandle.linkToStatic".
    "-XX:ReservedCodeCacheSize=256m",
)
"""Half the time to the first write."""

UNVERIFIED = ("-XX:+UnlockDiagnosticVMOptions", "-XX:-BytecodeVerificationRemote")
"""Starts sooner. Only for jars that are trusted: locked by their hashes, or from a folder that one named oneself."""


def of_a_consumer(*more: str) -> dict[str, str]:
    """Spark's setting for a JVM of a consumer's own.

    Args:
        more: further options.
    """
    return {OPTIONS: shlex.join((*SAFE, *QUICK_START, *more))}
