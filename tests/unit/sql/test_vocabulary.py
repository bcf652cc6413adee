"""What editors are told of the dialect."""

from __future__ import annotations

import json
import re
from pathlib import Path

from penstock.sql.parser import parse_one
from penstock.sql.vocabulary import vocabulary

CORPUS = Path(__file__).parents[2] / "sql"
CASES = Path(__file__).parents[2] / "conformance" / "stream-cases.json"


def test_every_function_of_the_documentation_is_there_once() -> None:
    found = vocabulary()["functions"]
    by_name = {f["name"]: f for f in found}
    assert len(by_name) == len(found) > 150
    assert by_name["avg"] == {
        "name": "avg",
        "signature": "avg(number)",
        "doc": by_name["avg"]["doc"],
        "kind": "aggregate",
        "where": "everywhere",
    }
    assert by_name["upper"]["kind"] == "scalar" and by_name["upper"]["doc"]
    assert by_name["percentile"]["kind"] == "aggregate"
    assert (by_name["lag"]["kind"], by_name["lag"]["where"]) == ("over", "queries")
    assert by_name["percentile"]["kind"] == by_name["irate"]["kind"] == "aggregate"
    assert by_name["diff"]["signature"] == "diff(x, [ignore])"
    assert by_name["diff"]["kind"] == by_name["state_count"]["kind"] == "series"
    assert by_name["diff"]["where"] == "queries"
    assert by_name["percentile"]["where"] == by_name["levenshtein"]["where"] == "queries"
    assert json.loads(json.dumps(found)) == found


def test_words_of_statements_are_known() -> None:
    """Words in capitals of the conformance cases and the corpus are keywords, types or functions."""
    found = vocabulary()
    known = {*found["keywords"], *(f["name"].upper() for f in found["functions"])}
    known |= {word for kind in found["types"] for word in kind.split()}
    texts = [CASES.read_text(), *(path.read_text() for path in CORPUS.glob("*.test"))]
    # in capitals, and between spaces: no part of a name or of a text
    words = re.findall(r"(?<= )[A-Z][A-Z_]{2,}(?=[ (])", "\n".join(texts))
    counts = {word: words.count(word) for word in set(words)}
    often = {word for word, count in counts.items() if count >= 20 and not word.startswith("E_")}
    assert len(often) > 30
    assert sorted(often - known) == []


def test_each_clause_is_one_of_the_grammar() -> None:
    texts = {
        "SELECT": "SELECT count(*) FROM t {}",
        "CREATE STREAM": "CREATE STREAM s {} INTO r AS SELECT count(*) FROM t INTERVAL(10s)",
    }
    clauses = vocabulary()["clauses"]
    assert {clause["of"] for clause in clauses} == texts.keys()
    for clause in clauses:
        assert clause["name"] in clause["example"]
        parse_one(texts[clause["of"]].format(clause["example"]))
