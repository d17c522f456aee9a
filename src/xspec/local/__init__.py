"""A small real model on this machine: proof of the route with a model that nobody simulated."""
