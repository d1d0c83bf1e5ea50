"""Commands about a group that runs: how it stands, and what its controller would do now."""
