"""An MCP server over stdio without a library: orders, whose refunds it appends to the file refunds-RUN."""

from __future__ import annotations

import json  # noqa: TID251 - a program of its own
import os
import sys
from pathlib import Path
from typing import Any

OBJECT = {"type": "object"}
TOOLS = [
    {"name": "lookup", "inputSchema": OBJECT, "outputSchema": OBJECT},
    {"name": "refund", "inputSchema": OBJECT},
    {"name": "leave", "inputSchema": OBJECT},
]


def call(name: str, arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the result of a tool call."""
    if name == "leave":
        os._exit(3)
    if name == "lookup":
        content = {"order": arguments["order"], "amount": 30, "note": "paid by card"}
        return {"content": [{"type": "text", "text": json.dumps(content)}], "structuredContent": content}
    with Path(f"refunds-{os.environ['CERTKIT_RUN']}").open("a", encoding="utf-8") as file:
        file.write(f"{arguments['order']} {arguments['amount']}\n")
    return {"content": [{"type": "text", "text": f"refunded {arguments['amount']}"}]}


def reply(method: str, params: dict[str, Any]) -> dict[str, Any]:
    """Return the reply to a request."""
    if method == "initialize":
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "orders", "version": "1"},
        }
    if method == "tools/list":
        return {"tools": TOOLS}
    return call(params["name"], params["arguments"]) if method == "tools/call" else {}


for line in sys.stdin:
    request = json.loads(line)
    if "id" in request:
        result = reply(request["method"], request.get("params", {}))
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}) + "\n")
        sys.stdout.flush()
