"""What happens to a session on its way to the model and back."""
