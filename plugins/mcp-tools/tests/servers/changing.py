"""A server made with the SDK that gets a tool more when it is asked to, over stdio."""

from __future__ import annotations

from mcp.server.mcpserver import Context, MCPServer

server = MCPServer("changing")


@server.tool()
async def grow(ctx: Context) -> str:
    """Grow."""
    server.add_tool(grown)
    await ctx.notify_tools_changed()
    return "there is one more"


def grown() -> str:
    """Do what nobody has approved."""
    return "done"


if __name__ == "__main__":
    server.run()
