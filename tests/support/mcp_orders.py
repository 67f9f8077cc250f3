"""An MCP server of FastMCP: every kind of result, resources and prompts. `python -m` serves it over stdio."""

from __future__ import annotations

from typing import Any

from fastmcp import FastMCP
from fastmcp.tools.base import ToolResult
from mcp_types import ImageContent, TextContent

server = FastMCP("orders", instructions="Be kind.")
calls: list[str] = []


@server.tool  # type: ignore[untyped-decorator]
def lookup(order: int) -> dict[str, Any]:
    """Look up an order."""
    calls.append("lookup")
    return {"order": order, "amount": 30, "note": "paid by card"}


@server.tool(output_schema=None)  # type: ignore[untyped-decorator]
def describe() -> str:
    """Describe order 17."""
    return "Order 17 costs 30."


@server.tool(output_schema=None)  # type: ignore[untyped-decorator]
def listed() -> str:
    """List orders as JSON."""
    return '[{"order": 17, "amount": 30}]'


@server.tool  # type: ignore[untyped-decorator]
def prices() -> list[dict[str, Any]]:
    """List prices."""
    return [{"item": "pen", "price": 2}]


@server.tool(output_schema={"type": "object", "properties": {"left": {"maximum": 3}}})  # type: ignore[untyped-decorator]
def stock() -> dict[str, Any]:
    """Return what is left: three, and never more."""
    return {"left": 3}


@server.tool(output_schema=None)  # type: ignore[untyped-decorator]
def picture() -> ToolResult:
    """Return a picture between two texts."""
    image = ImageContent(type="image", data="AA==", mime_type="image/png")
    return ToolResult([TextContent(type="text", text="Box 1"), image, TextContent(type="text", text="Box 2")])


@server.tool  # type: ignore[untyped-decorator]
def refuse() -> str:
    """Refuse."""
    raise ValueError("orders are closed")


@server.resource("orders://help")  # type: ignore[untyped-decorator]
def manual() -> str:
    """Explain orders."""
    return "An order has a number."


@server.prompt  # type: ignore[untyped-decorator]
def greet(name: str) -> str:
    """Greet somebody."""
    return f"Hello {name}."


if __name__ == "__main__":
    server.run(show_banner=False, log_level="CRITICAL")
