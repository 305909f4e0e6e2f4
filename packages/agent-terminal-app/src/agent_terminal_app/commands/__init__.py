"""The subcommands, one module each; a module's `command` is what `agent NAME` runs."""
