"""What is stored, in forms that other programs read: one file a target."""
