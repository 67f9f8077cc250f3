"""An agent that speaks MCP over stdio by itself: it looks up an order, and refunds what the result says.

The first argument says how it behaves otherwise: floods, leaves.
"""

import json
import os
import subprocess
import sys
from contextlib import suppress


class Server:
    """A connection to an MCP server."""

    def __init__(self, command):
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.number = 0
        about = {"name": "agent", "version": "1"}
        self.ask("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": about})
        self.send({"method": "notifications/initialized"})

    def send(self, message):
        self.process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        self.process.stdin.flush()

    def ask(self, method, params):
        self.number += 1
        self.send({"id": self.number, "method": method, "params": params})
        while line := self.process.stdout.readline():
            reply = json.loads(line)
            if reply.get("id") == self.number:
                return reply.get("result", reply)
        sys.exit("the server ended")

    def call(self, name, **arguments):
        """Call a tool; once more where it ends in an error."""
        for _ in range(2):
            result = self.ask("tools/call", {"name": name, "arguments": arguments})
            if result.get("isError") is False:
                break
        return result

    def close(self):
        self.process.stdin.close()
        self.process.wait()


server = Server(json.loads(os.environ["CERTKIT_MCP_COMMAND"]))
behaviour = sys.argv[1] if sys.argv[1:] else ""
order = int(os.environ["CERTKIT_PROMPT"].split()[-1].rstrip("."))
if behaviour == "leaves":
    server.call("leave")
while behaviour == "floods":
    server.call("lookup", order=order)
seen = server.call("lookup", order=order)
server.close()
server = Server(json.loads(os.environ["CERTKIT_MCP_COMMAND"]))  # as a framework that connects for every call
with suppress(KeyError):
    server.call("refund", order=order, amount=seen["structuredContent"]["amount"])
server.close()
print("Refunded.")
