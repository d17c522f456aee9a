"""Where model calls go: members, keys, the guard, retries, pacing and drift. The way in is `client.Route`.

Nothing is imported here, because `members` and `keys` are wanted by code that must not pay for an HTTP stack.
"""
