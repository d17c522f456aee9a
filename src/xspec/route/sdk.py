"""The SDK, without the HTTP stack that it would use if it were asked to: a fifth of its import."""

from xspec.left_out import left_out

with left_out("aiohttp"):
    import openai

__all__ = ["openai"]
