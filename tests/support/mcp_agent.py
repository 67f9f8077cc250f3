"""An agent that speaks MCP over stdio without a library: it looks up its order, and refunds what it read.

The first argument says how it behaves otherwise.
"""

from __future__ import annotations

import json  # noqa: TID251 - a program of its own
import os
import subprocess
import sys
import time
from typing import Any, Final


class Server:
    """A connection to an MCP server."""

    def __init__(self, command: list[str]) -> None:
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self.number = 0
        about = {"name": "agent", "version": "1"}
        self.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about})
        self.send({"method": "notifications/initialized"})

    def send(self, message: dict[str, Any]) -> None:
        assert self.process.stdin
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        self.process.stdin.flush()

    def ask(self, method: str, params: dict[str, Any]) -> Any:
        self.number += 1
        self.send({"id": self.number, "method": method, "params": params})
        assert self.process.stdout
        while line := self.process.stdout.readline():
            reply = json.loads(line)
            if reply.get("id") == self.number:
                return reply.get("result", reply)
        sys.exit("the server ended")

    def call(self, name: str, **arguments: Any) -> Any:
        """Call a tool; twice more where it ends in an error."""
        for _ in range(3):
            result = self.ask("tools/call", {"name": name, "arguments": arguments})
            if not result.get("isError"):
                break
        return result

    def close(self) -> None:
        assert self.process.stdin
        self.process.stdin.close()
        self.process.wait()


BEHAVIOUR: Final = sys.argv[1] if sys.argv[1:] else ""
if BEHAVIOUR == "raises":
    sys.exit(7)
if BEHAVIOUR == "hangs":
    time.sleep(60)
if BEHAVIOUR == "silent":
    print("  ")
    sys.exit()
server = Server(json.loads(os.environ["CERTKIT_MCP_COMMAND"]))
order = os.environ["CERTKIT_PROMPT"].split()[-1].rstrip(".")
if BEHAVIOUR == "leaves":
    server.call("leave")
    time.sleep(60)
while BEHAVIOUR == "floods":
    server.call("lookup", order=order)
seen = server.call("lookup", order=order)
server.call("refund", order=order, amount=seen["structuredContent"]["amount"])
server.close()
print("Refunded.")
