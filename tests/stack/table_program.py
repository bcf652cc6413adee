"""A program beside others that subscribes to a stream table, or appends to one, until it is killed.

`python -m tests.stack.table_program subscribe URL USER PASSWORD TABLE GROUP FILE` writes the ids of
its rows to FILE, a line each; `python -m tests.stack.table_program append URL USER PASSWORD TABLE`
prints the number of each row whose `append` has returned.
"""

from __future__ import annotations

import itertools
import sys
import threading

import penstock


def subscribe(url: str, user: str, password: str, table: str, group: str, path: str) -> None:
    with (
        penstock.connect(url, user=user, password=password) as client,
        open(path, "a", encoding="utf-8", buffering=1) as file,
    ):

        def handler(message: penstock.Message) -> None:
            assert message.row_ids is not None
            file.write("".join(f"{row}\n" for row in message.row_ids.to_pylist()))

        client.ha.subscribe(
            table,
            handler,
            "ha_sub",
            offset=0,
            options=penstock.SubscriptionOptions(msg_as_table=True, raft_group=int(group)),
        )
        file.write("\n")  # it stands by
        threading.Event().wait()


def append(url: str, user: str, password: str, table: str) -> None:
    with penstock.connect(url, user=user, password=password) as client:
        target = client.ha.table(table)
        for n in itertools.count():
            target.append([{"ts": "2026-03-02T09:30:00Z", "n": n}])
            print(n, flush=True)


if __name__ == "__main__":
    {"subscribe": subscribe, "append": append}[sys.argv[1]](*sys.argv[2:])
