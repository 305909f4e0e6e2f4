"""Secrets at rest: what people store is encrypted with a key that is not in the database."""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cryptography.fernet import Fernet


class Vault:
    """Seals secrets with a key made from a passphrase of the server.

    Args:
        secret: The passphrase: random, at least 32 characters, and the same for all servers of a database.

    Raises:
        ValueError: If it is too short to be random.
    """

    def __init__(self, secret: str) -> None:
        if len(secret) < 32:  # noqa: PLR2004 - as the documentation says
            raise ValueError("the secret of the server has at least 32 characters")
        self._secret = secret.encode()

    def seal(self, text: str, *, whose: str) -> str:
        """Encrypt a text of a person; another person's name does not open it."""
        return self._box(whose).encrypt(text.encode()).decode()

    def open(self, sealed: str, *, whose: str) -> str | None:
        """Decrypt what `seal` returned; None if the secret of the server is another one by now."""
        from cryptography.fernet import InvalidToken  # of the extra "team"

        try:
            return self._box(whose).decrypt(sealed.encode()).decode()
        except InvalidToken:
            return None

    def sign(self, content: str) -> str:
        """Return a signature that only servers with this secret can make."""
        key = hashlib.sha256(b"cookie " + self._secret).digest()
        return hmac.new(key, content.encode("utf-8", "surrogatepass"), "sha256").hexdigest()

    def _box(self, whose: str) -> Fernet:
        from cryptography.fernet import Fernet

        key = hmac.new(self._secret, b"provider keys of " + whose.encode(), "sha256").digest()
        return Fernet(base64.urlsafe_b64encode(key))
