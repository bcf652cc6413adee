from __future__ import annotations

from penstock.auth.accepted import AcceptedHeaders, AcceptedLogin

ANN = AcceptedLogin("ann", "mark", 2**62)


def test_a_header_is_found_as_it_was_written():
    accepted = AcceptedHeaders()
    accepted.keep("Basic YTpi", ANN)
    assert accepted.find("Basic YTpi") == ANN
    assert accepted.find("Basic YTpj") is None


def test_the_header_that_came_first_is_forgotten_first():
    accepted = AcceptedHeaders(most=2)
    for header in ("one", "two", "three"):
        accepted.keep(header, ANN)
    assert [accepted.find(h) for h in ("one", "two", "three")] == [None, ANN, ANN]


def test_digests_of_two_processes_differ():
    assert AcceptedHeaders().digest("Basic YTpi") != AcceptedHeaders().digest("Basic YTpi")
