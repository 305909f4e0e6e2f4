"""What `agent` commands and the commands of the chat both show, one module per subject."""
