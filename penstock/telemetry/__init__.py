"""Spans of our own: what services say to an OpenTelemetry collector about their work.

`tracer` is what services call, `options` what they are told by variables; the rest is how spans
leave the process. Without an endpoint there is no tracer, and nothing is made.
"""
