"""Logins at authorisation servers (OAuth 2), for providers and MCP servers."""

from oauth_login.logins import LoginFailed, Logins, Pending
from oauth_login.plugin import OAuthLogin
from oauth_login.tokens import LoginNeeded, TokenStore

__all__ = ["LoginFailed", "LoginNeeded", "Logins", "OAuthLogin", "Pending", "TokenStore"]
