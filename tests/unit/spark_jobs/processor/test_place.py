"""What a partition of a topic is called."""

from __future__ import annotations

from dataclasses import replace

from spark_jobs.processor.place import ProcessorPlace


def test_it_is_named_by_topic_and_partition() -> None:
    assert str(ProcessorPlace("in.db", 5, 3)) == "in.db:3"


def test_controls_of_a_topic_made_again_come_from_somebody_else() -> None:
    place = ProcessorPlace("in.db", 5, 3)
    others = [replace(place, topic_id=6), replace(place, partition=4), replace(place, topic="in.e")]

    assert len({p.forwarder for p in (place, *others)}) == 4
    assert place.forwarder == replace(place).forwarder
