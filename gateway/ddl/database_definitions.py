"""CREATE and ALTER DATABASE."""

from __future__ import annotations

from gateway.ddl.definer import Definer
from gateway.ddl.table_definitions import After, until_read
from gateway.intake import database_of
from gateway.repartition.coordinator import RepartitionCoordinator
from penstock.catalog import changes
from penstock.sql import statements as st
from penstock.sql.plan import Duration


class DatabaseDefinitions:
    """Runs in the DDL thread; what it returns waits in another."""

    def __init__(
        self, definer: Definer, repartition: RepartitionCoordinator, partitions: int
    ) -> None:
        """*partitions*: of a database whose statement says nothing of them."""
        self._definer = definer
        self._repartition = repartition
        self._partitions = partitions

    def create(self, statement: st.CreateDatabase) -> After:
        """CREATE DATABASE; what it returns waits until its topic is read."""
        o = statement.options
        change = self._definer.decide(
            lambda c, i: changes.create_database(
                c,
                i,
                statement.name,
                precision=o.precision or "ms",
                keep=o.keep,
                partitions=o.partitions or self._partitions,
                max_ahead=o.max_ahead or Duration(1, "d"),
                replica=o.replica or 1,
                dot_to_underscore=bool(o.dot_to_underscore),
                if_not_exists=statement.if_not_exists,
            )
        )
        return until_read(self._definer, change)

    def alter(self, statement: st.AlterDatabase) -> After:
        """ALTER DATABASE; with PARTITIONS it has moved when this returns."""
        o = statement.options
        if o.replica is not None:
            hint = "Kafka's own tools move replicas; REPLICA counts at CREATE DATABASE"
            raise statement.error(
                "replicas of a database are not changed here", code="E_BAD_OPTION", hint=hint
            )
        if o.precision is not None:
            hint = (
                "make a new database, and a materialized view that passes the rows on from the"
                " first: docs/scaling.md shows it"
            )
            raise statement.error(
                "the precision of a database is for ever", code="E_BAD_OPTION", hint=hint
            )
        self._definer.decide(
            lambda c, _: changes.alter_database(
                c,
                statement.name,
                keep=o.keep,
                max_ahead=o.max_ahead,
                dot_to_underscore=o.dot_to_underscore,
            )
        )
        if o.partitions is None:
            return None
        self._repartition.move(statement.name, o.partitions)
        moved = database_of(self._definer.catalog, statement.name)
        return lambda: self._definer.watch.until_read(moved.topic)
