"""What every part uses and no user sees: internal, and free to change."""
