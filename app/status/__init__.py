"""What is shown of the group while it runs: a page, figures for Prometheus, answers in JSON.

Everything is made of the messages that the controller hears and the decisions it makes; nothing here decides anything.
"""
