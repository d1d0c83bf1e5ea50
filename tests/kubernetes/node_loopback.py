"""A plugin of CNI that comes after the one that gives a pod its address: some ports of 127.0.0.1 in the pod are the
node's.

In its settings: `node`, the address of the node, and `ports`, as FIRST-LAST. It runs as a program of its own, for
containerd.
"""

import json
import os
import subprocess
import sys

_SCRIPT = """
echo 1 > /proc/sys/net/ipv4/conf/all/route_localnet
echo 1 > /proc/sys/net/ipv4/conf/all/accept_local
ip rule add pref 10 lookup local
ip rule del pref 0
ip rule add pref 1 to 127.0.0.0/8 ipproto tcp dport "$1" lookup 100
ip route add default via "$2" src "$3" table 100
"""


def main() -> None:
    match os.environ["CNI_COMMAND"]:
        case "ADD":
            settings = json.load(sys.stdin)
            before = settings["prevResult"]
            own, _, _ = before["ips"][0]["address"].partition("/")
            arguments = [settings["ports"], settings["node"], own]
            inside = ["nsenter", f"--net={os.environ['CNI_NETNS']}", "sh", "-ec", _SCRIPT, "loopback", *arguments]
            subprocess.run(inside, check=True, stdout=sys.stderr)
            print(json.dumps(before))  # noqa: T201
        case "VERSION":
            print(json.dumps({"cniVersion": "0.4.0", "supportedVersions": ["0.4.0"]}))  # noqa: T201
        case _:
            pass  # what was done goes with the namespace


if __name__ == "__main__":
    main()
