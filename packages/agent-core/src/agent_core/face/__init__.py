"""`AgentCore`, part by part."""
