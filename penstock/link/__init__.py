"""The link between deployments: what is on the wire, and the client's end of it. The server's end
is `services/federation`.
"""
