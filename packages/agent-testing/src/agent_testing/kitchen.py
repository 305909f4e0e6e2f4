"""A small MCP server, as the text of a program: it has one tool, which brews tea."""

from typing import Final

KITCHEN: Final = '''
from mcp.server.mcpserver import MCPServer

server = MCPServer("kitchen")


@server.tool()
def brew(leaves: str) -> str:
    """Brew tea."""
    return f"a cup of {leaves}"


server.run()
'''
