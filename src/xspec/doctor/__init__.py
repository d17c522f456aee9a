"""Is the route fit to be measured through? Checks that each end in a finding with what to do about it.

The way in is `examine.examine`. Every request it makes is guarded: `probe` derives a spec of its own from the route
that is looked at, and the guard holds the probes to that one.
"""
