"""Model servers that xspec starts itself, each in a process of its own."""
