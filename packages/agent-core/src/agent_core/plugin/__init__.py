"""Plugins, wrapped: optional hooks filled in, dicts read, errors named."""
