"""How groups, plans and figures look in a terminal, and how far long work is."""
