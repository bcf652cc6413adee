"""Descriptions of what other programs can talk to: OpenAPI for HTTP, AsyncAPI for WebSockets and
topics.

`operations/` has one entry a route, `websockets.py` and `topics.py` one a channel. `openapi.py` and
`asyncapi.py` make the documents, `routes.py` serves them, and `reference.py` writes them into
`docs/`.
"""
