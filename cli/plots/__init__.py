"""Plans and figures as pictures; they need Matplotlib."""
