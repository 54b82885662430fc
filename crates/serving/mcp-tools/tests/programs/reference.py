"""A server of the reference implementation (the `mcp` package, versions 1 and 2).

reference.py            on standard input and output
reference.py http PORT  at http://127.0.0.1:PORT/mcp
"""

import asyncio
import os
import sys
from typing import Annotated, Literal

from mcp.types import ToolAnnotations
from pydantic import BaseModel, Field

try:
    from mcp.server.mcpserver import Context, Image, MCPServer as Server

    FIRST = False
except ImportError:
    from mcp.server.fastmcp import Context, FastMCP as Server, Image

    FIRST = True

HTTP = len(sys.argv) > 2
PLACE = {"host": "127.0.0.1", "port": int(sys.argv[2])} if HTTP else {}
server = Server("reference", log_level="WARNING", **(PLACE if FIRST else {}))


class Place(BaseModel):
    name: str
    inside: "Place | None" = None


class Weather(BaseModel):
    city: str
    degrees: float
    days: list[str]


@server.tool(annotations=ToolAnnotations(readOnlyHint=True))
def add(a: int, b: Annotated[int, Field(description="the second one", ge=0)] = 1) -> int:
    """Adds two numbers."""
    return a + b


@server.tool(annotations=ToolAnnotations(idempotentHint=True))
def weather(city: str, unit: Literal["C", "F"] = "C") -> Weather:
    """The weather of a city."""
    return Weather(city=city, degrees=21.5, days=[f"day {number}" for number in range(2000)])


@server.tool()
def where(place: Place) -> str:
    """Where a place is."""
    return f"{place.name} in {place.inside.name if place.inside else 'nothing'}"


@server.tool()
def fail(reason: str) -> str:
    """Fails."""
    raise ValueError(reason)


@server.tool()
def picture() -> Image:
    """A picture."""
    return Image(data=b"\x89PNG" + bytes(96), format="png")


@server.tool()
async def slow(ctx: Context, seconds: float) -> str:
    """Tells how far it is, and waits."""
    for step in range(3):
        await ctx.report_progress(step, 3)
    await asyncio.sleep(seconds)
    return "waited"


@server.tool()
def variables() -> str:
    """The names of its variables."""
    return " ".join(sorted(name for name in os.environ if name != "LC_CTYPE"))


@server.tool()
def leave() -> str:
    """Ends the server."""
    os._exit(7)


@server.tool()
async def grow(ctx: Context) -> str:
    """Adds a tool."""
    server.add_tool(lambda text: text, name="grown", description="New.")
    await ctx.session.send_tool_list_changed()
    return "grown"


if HTTP:
    server.run("streamable-http", **({} if FIRST else PLACE))
else:
    server.run()
