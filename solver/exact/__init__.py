"""The model of the paper, solved exactly or bounded: what proves how good a plan is."""
