"""Events of a followed table, for listeners and iterators."""

from __future__ import annotations

import threading

from penstock.link.updates import TableUpdate, UpdateFeed

RESET, CLEAR = TableUpdate("reset"), TableUpdate("clear")


def feed() -> UpdateFeed:
    return UpdateFeed(threading.Condition())


def test_every_listener_hears_what_comes_after_it() -> None:
    made = feed()
    first: list[TableUpdate] = []
    second: list[TableUpdate] = []
    made.listen(first.append)
    made.publish(RESET)
    made.listen(second.append)
    made.publish(CLEAR)
    assert (first, second) == ([RESET, CLEAR], [CLEAR])


def test_a_watcher_gets_every_update_and_the_end() -> None:
    made = feed()
    updates = made.watch(10)
    first: list[TableUpdate | None] = []
    started = threading.Event()

    def publish() -> None:
        # until the watcher is there, nobody keeps an update
        while not started.is_set():
            made.publish(RESET)
        made.publish(CLEAR)
        made.end()

    thread = threading.Thread(target=publish)
    thread.start()
    for update in updates:
        first.append(update)
        started.set()
    thread.join(10)
    kinds = [update.kind if update is not None else None for update in first]
    assert kinds[0] == "reset" and kinds[-2:] == ["clear", None]


def test_a_watcher_ends_when_nothing_comes() -> None:
    assert list(feed().watch(0.001)) == []


def test_whoever_watches_after_the_end_is_told_at_once() -> None:
    made = feed()
    made.publish(RESET)
    made.end()
    assert list(made.watch(None)) == [None]


def test_a_listener_may_listen_to_more() -> None:
    made = feed()
    heard: list[str] = []

    def first(update: TableUpdate) -> None:
        heard.append("first")
        made.listen(lambda update: heard.append("second"))

    made.listen(first)
    made.publish(RESET)
    assert heard == ["first"]


def test_whoever_waits_on_the_lock_is_woken() -> None:
    lock = threading.Condition()
    made = UpdateFeed(lock)
    woken = threading.Event()
    waiting = threading.Event()

    def wait() -> None:
        with lock:
            waiting.set()
            if lock.wait(10):
                woken.set()

    thread = threading.Thread(target=wait)
    thread.start()
    assert waiting.wait(10)
    made.publish(RESET)
    thread.join(10)
    assert woken.is_set()
