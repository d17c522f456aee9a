"""An OpenAI-compatible endpoint on loopback that puts programs which call models themselves under a frozen spec.

Their calls go through the same guarded route as those of the built-in agents. What they say is observed and recorded,
not frozen. The way in is `xspec.experiment.gateway_execution`.
"""
