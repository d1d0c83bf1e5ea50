"""Plans: which engines look for them, and what is found without a proof."""
