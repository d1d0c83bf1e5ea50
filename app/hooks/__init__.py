"""What happens to the group, told to a webhook."""
