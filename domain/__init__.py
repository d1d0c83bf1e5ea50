"""The words that all other packages speak: partitions, speeds, assignments, migrations, Rscore, messages on the wire.

Imports none of the others, and talks to nothing.
"""
