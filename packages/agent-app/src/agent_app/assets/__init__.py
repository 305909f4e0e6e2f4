"""Files that belong to sessions: attachments, and tool output that is too long for a message.

::

    asset     what is known of one, and what can go wrong
    media     what kind of data it is, and what it is called
    folder    files below one folder, whatever happens to the folder meanwhile
    index     which session has which asset, in a small database
    files     SessionAssetStore
"""

from agent_app.assets.asset import Asset, AssetNotFound, AssetRefused
from agent_app.assets.files import SessionAssetStore

__all__ = ["Asset", "AssetNotFound", "AssetRefused", "SessionAssetStore"]
