"""The link that logs a browser in as root."""

from __future__ import annotations

from penstock.auth.tokens import LOGIN_S, Tokens
from penstock.mesh.layout import Layout
from penstock.runtime.clock import SystemClock


def login_link(layout: Layout, gateway_url: str) -> str:
    """Return an address that logs a browser in: whoever may read the mesh's secrets may make
    one.
    """
    password = layout.secret("root").read_text(encoding="utf-8").strip()
    tokens = Tokens(layout.token_key.read_text(encoding="utf-8").strip(), SystemClock())
    token = tokens.issue("root", tokens.root_mark(password), seconds=LOGIN_S, kind="login")
    return f"{gateway_url}/login?token={token}"
