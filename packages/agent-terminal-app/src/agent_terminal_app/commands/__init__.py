"""The subcommands; `group` lists them and says where each is."""
