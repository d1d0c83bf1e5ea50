"""What the controller decided and why, for a person: found on `controller.decisions`, told in words."""
