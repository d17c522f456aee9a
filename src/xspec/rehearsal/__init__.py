"""A simulated model behind a real loopback socket, with injected faults and known expected figures."""
