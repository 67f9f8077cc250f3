"""An MCP server over stdio: orders, whose refunds it appends to the file refunds-RUN."""

import os
from pathlib import Path
from typing import Any

from fastmcp import FastMCP

server = FastMCP("orders", instructions="Be kind.")


@server.tool
def lookup(order: int) -> dict[str, Any]:
    """Look up an order."""
    return {"order": order, "amount": 30, "note": "paid by card"}


@server.tool(output_schema=None)
def refund(order: int, amount: int) -> str:
    """Refund an order."""
    with Path(f"refunds-{os.environ.get('CERTKIT_RUN')}").open("a") as file:
        file.write(f"{order} {amount}\n")
    return f"refunded {amount}"


@server.tool(output_schema={"type": "object", "properties": {"n": {"maximum": 3}}, "additionalProperties": False})
def few() -> dict[str, Any]:
    """Return three, and never more."""
    return {"n": 3}


@server.tool
def items() -> list[dict[str, Any]]:
    """List items."""
    return [{"item": "pen", "price": 2}]


@server.tool
def refuse() -> str:
    """Refuse."""
    raise ValueError("orders are closed")


@server.tool
def leave() -> str:
    """End the server."""
    os._exit(3)


@server.resource("orders://help")
def manual() -> str:
    """Explain orders."""
    return "An order has a number."


@server.prompt
def greet(name: str) -> str:
    """Greet somebody."""
    return f"Hello {name}."


if __name__ == "__main__":
    server.run(show_banner=False)
