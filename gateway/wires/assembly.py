"""The wires of other databases, put together: which routes they have."""

from __future__ import annotations

from collections.abc import Callable

from aiohttp import web

from gateway.guard import RequestGuard
from gateway.statements.executor import Executor
from gateway.wires.influx_about import InfluxAbout
from gateway.wires.influx_query import InfluxQuery
from gateway.wires.influx_write import InfluxWrite
from gateway.wires.influxql.runner import Runner
from gateway.wires.opentsdb import OpenTsdb
from gateway.wires.otlp import OtlpMetrics
from gateway.wires.point_writer import PointWriter
from gateway.wires.prometheus import RemoteWrite
from gateway.wires.tdengine.assembly import TdengineParts
from penstock.auth.access import Access
from penstock.catalog.view import Catalog
from penstock.runtime.clock import Clock


class WireParts:
    """One per process."""

    def __init__(
        self,
        writer: PointWriter,
        executor: Executor,
        catalog: Callable[[], Catalog],
        access: Access,
        clock: Clock,
        max_body: int,
        tdengine: TdengineParts,
    ) -> None:
        self.close = tdengine.close
        runner = Runner(executor, catalog, access, clock)
        self._parts = (
            InfluxWrite(writer),
            InfluxQuery(runner, clock),
            InfluxAbout(executor, catalog, access, clock),
            OpenTsdb(writer),
            RemoteWrite(writer, max_body),
            OtlpMetrics(writer),
            tdengine,
        )

    def routes(self, guard: RequestGuard) -> list[web.RouteDef]:
        return [route for part in self._parts for route in part.routes(guard)]
