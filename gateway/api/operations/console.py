"""Log-ins, tokens, and the console with what its pages follow."""

from __future__ import annotations

from gateway.api.operation import (
    JSON,
    AnswerSpec,
    Body,
    LoginSpec,
    Operation,
    Operations,
    ParameterSpec,
    json_answer,
    path_part,
)
from gateway.api.shapes import (
    BOOLEAN,
    INTEGER,
    TEXT,
    Shape,
    array,
    described,
    nullable,
    one_of,
    record,
    refer,
)
from penstock.auth.tokens import LONGEST_S

TAG = "console"
ABOUT = "Log-ins, tokens and the console."

SHAPES: dict[str, Shape] = {
    "Credentials": record({"user": TEXT, "password": TEXT}),
    "Identity": record(
        {
            "user": TEXT,
            "by": one_of("session", "token", "password"),
            "expires": described(nullable(INTEGER), "Seconds since 1970; null for a password."),
            "admin": described(BOOLEAN, "May do everything."),
            "roles": array(TEXT),
            "rights": array(refer("Right")),
        }
    ),
    "Right": record(
        {
            "right": TEXT,
            "kind": one_of("all", "database", "table", "stream", "view", "external stream"),
            "database": nullable(TEXT),
            "name": nullable(TEXT),
        }
    ),
    "TokenRequest": record(
        {},
        {
            "seconds": nullable(
                {"type": "integer", "minimum": 1, "maximum": LONGEST_S, "description": "A day."}
            )
        },
    ),
    "Token": record(
        {"token": TEXT, "user": TEXT, "expires": described(INTEGER, "Seconds since 1970.")}
    ),
    "LogoutRequest": record(
        {}, {"everywhere": described(BOOLEAN, "End all sessions of the user; false.")}
    ),
    "Ended": record({"ended": described(INTEGER, "How many sessions.")}),
}
_TO_PAGE = {308: AnswerSpec("The console is at `/`.", headers=("Location",))}
_FILE: dict[int, AnswerSpec] = {
    200: AnswerSpec("The file.", {"*/*": {}}, ("ETag", "Cache-Control")),
    304: AnswerSpec(
        "It is as the caller has it (`If-None-Match`).", headers=("ETag", "Cache-Control")
    ),
}

OPERATIONS: Operations = {
    ("POST", "/v1/tokens"): Operation(
        "issueToken",
        TAG,
        "Give the caller a token",
        json_answer(refer("Token")),
        "It ends with the right to log in. A token makes no token that outlives it.",
        body=Body({JSON: refer("TokenRequest")}, required=False),
        errors=(400, 413),
    ),
    ("DELETE", "/v1/tokens"): Operation(
        "revokeTokens",
        TAG,
        "Revoke all tokens of the caller",
        json_answer(record({})),
        errors=(404, 409, 502, 504),
    ),
    ("GET", "/login"): Operation(
        "openLink",
        TAG,
        "Log a browser in, by the link of `penstock login`",
        {
            303: AnswerSpec(
                "The session's cookie, and the console; `/?link=ended` for a browser with a link "
                "that is used or too old.",
                headers=("Location", "Set-Cookie"),
            )
        },
        "A link is good once.",
        (ParameterSpec("token", "The link's token.", required=True),),
        errors=(401, 503),
        login=LoginSpec.NOBODY,
    ),
    ("POST", "/v1/login"): Operation(
        "logIn",
        TAG,
        "Begin a session in a browser",
        {200: AnswerSpec("Who has logged in.", {JSON: refer("Identity")}, ("Set-Cookie",))},
        body=Body({JSON: refer("Credentials")}),
        errors=(400, 401, 403, 413, 415, 429, 500, 503),
        login=LoginSpec.NOBODY,
    ),
    ("POST", "/v1/logout"): Operation(
        "logOut",
        TAG,
        "End the session in the caller's cookie, or all of its user",
        {200: AnswerSpec("How many have ended.", {JSON: refer("Ended")}, ("Set-Cookie",))},
        body=Body({JSON: refer("LogoutRequest")}, required=False),
        errors=(400, 403, 413, 429, 500, 503),
        login=LoginSpec.OPTIONAL_SESSION,
    ),
    ("GET", "/v1/whoami"): Operation(
        "whoAmI", TAG, "Tell who asks, and what they may do", json_answer(refer("Identity"))
    ),
    ("GET", "/v1/follow"): Operation(
        "follow",
        TAG,
        "Open a WebSocket for rows, events and counters as they come",
        {101: AnswerSpec("Subscriptions; see asyncapi.json.")},
    ),
    ("GET", "/"): Operation(
        "console", TAG, "Return the console's page", _FILE, login=LoginSpec.NOBODY
    ),
    ("GET", "/console"): Operation(
        "toConsole", TAG, "Lead to the console", _TO_PAGE, login=LoginSpec.NOBODY
    ),
    ("GET", "/console/"): Operation(
        "toConsoleFolder", TAG, "Lead to the console", _TO_PAGE, login=LoginSpec.NOBODY
    ),
    ("GET", "/console/{version}/{name}"): Operation(
        "consoleFile",
        TAG,
        "Return a file of the console",
        {**_FILE, 404: AnswerSpec("There is no such file.", {"text/plain": TEXT})},
        parameters=(
            path_part("version", "Of the console; changes with its files."),
            path_part("name", "Of the file, with folders."),
        ),
        login=LoginSpec.NOBODY,
    ),
}
