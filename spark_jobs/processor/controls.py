"""Control records at a partition processor: one function a kind.

Each takes effect at its offset, between the records before and behind it, and means the same in a
replay.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from penstock.records import DROPPED, ControlRecord
from penstock.sql.plan import TICKS_PER_SECOND, StreamPlan
from penstock.windows.kernel import Control
from spark_jobs.processor.stream import LiveStream

if TYPE_CHECKING:
    from spark_jobs.processor.processor import PartitionProcessor

#: how long a stream's catalog entry may be behind the control record that points at it
_CATALOG_PATIENCE = 20.0


def apply_control(processor: PartitionProcessor, control: ControlRecord, offset: int) -> None:
    """Do what a control record that stands at *offset* says, and pass it on."""
    if processor.apply_generation_control(control, offset):
        return
    if control.kind in _OWN:
        _OWN[control.kind](processor, control, offset)
        return
    if control.kind in _PASSED_ON:
        _PASSED_ON[control.kind](processor, control, offset)
    processor.forward(control, offset)


def _pass_barrier(processor: PartitionProcessor, control: ControlRecord, offset: int) -> None:
    processor.pass_barrier(control, offset)


def _fill(processor: PartitionProcessor, control: ControlRecord, offset: int) -> None:
    stream = processor.streams.by_id.get(control.stream or 0)
    if stream is not None:
        processor.filler.fill(stream, control, offset)


def _start_stream(processor: PartitionProcessor, control: ControlRecord, offset: int) -> None:
    """Begin a stream at this offset; a repeat, and a stream that is in the catalog no more, change
    nothing.
    """
    stream_id = control.stream
    if stream_id is None:
        return
    if stream_id not in processor.streams.by_id:
        # ids grow, and a stream has the highest of its commit: one below the next is there or is
        # dropped
        processor.worker.await_catalog(lambda c: c.next_id > stream_id, _CATALOG_PATIENCE)
        if processor.worker.catalog.catalog.stream_by_id(stream_id) is None:
            return
        stream = processor.streams.open(stream_id, control.body)
        processor.streams.touch(stream)
        processor.begin_stream(stream, offset)
    if not processor.pending.is_filling(stream_id):
        processor.report_live(stream_id, offset)


def _drop_stream(processor: PartitionProcessor, control: ControlRecord, offset: int) -> None:
    if control.stream is not None and control.stream in processor.streams.by_id:
        processor.drop_stream(control.stream)


def _alter_stream(processor: PartitionProcessor, control: ControlRecord, offset: int) -> None:
    """Go on with another plan: what has changed is saved under the old one first, because the
    kernel is made anew from its state.
    """
    stream = processor.streams.by_id.get(control.stream or 0)
    if stream is None or stream.text == control.body or stream.status == "failed":
        return
    processor.snapshot_if_dirty()
    processor.streams.alter(stream, control.body)


def _stop_stream(processor: PartitionProcessor, control: ControlRecord, offset: int) -> None:
    """End a stream that is over its quota."""
    stream = processor.streams.by_id.get(control.stream or 0)
    if stream is not None and stream.status != "failed":
        stream.fail(control.body)
        processor.streams.touch(stream)


def _show_open_windows(processor: PartitionProcessor, control: ControlRecord, offset: int) -> None:
    processor.show_open_windows(control)


def _tell_kernels(processor: PartitionProcessor, control: ControlRecord, offset: int) -> None:
    """Hand a control to the kernels of all streams that it is for."""
    if control.kind == "tick":
        processor.hear_tick(control)
    for stream in processor.streams.by_id.values():
        if processor.precedes(control, stream):
            continue
        if _sever_dropped(control, stream):
            processor.streams.touch(stream)
        if _is_for(processor, control, stream):
            stream.control(processor.kernel_control(control, stream.plan), offset)
            _set_status(control, stream)
            processor.streams.touch(stream)


def _sever_dropped(control: ControlRecord, stream: LiveStream) -> bool:
    """Have a stream read dropped tables no more; return True if that changes anything."""
    if control.body != DROPPED or control.table is None:
        return False
    return stream.sever(control.table, control.tables or ())


def _is_for(processor: PartitionProcessor, control: ControlRecord, stream: LiveStream) -> bool:
    if control.stream is not None:
        return stream.id == control.stream
    return processor.concerns(stream, control)


def _set_status(control: ControlRecord, stream: LiveStream) -> None:
    if control.kind in ("pause", "resume", "resume_skip") and stream.status != "failed":
        stream.status = "paused" if control.kind == "pause" else "running"


def to_kernel_control(control: ControlRecord, plan: StreamPlan) -> Control:
    """Return a control record as the kernel of *plan* takes it."""
    ticks = control.time * TICKS_PER_SECOND[plan.source.precision] // 1000
    return Control(control.kind, ticks, control.tables, control.low, control.high)


_Handler = Callable[["PartitionProcessor", ControlRecord, int], None]
#: kinds that the processor passes on by itself, or not at all
_OWN: dict[str, _Handler] = {"barrier": _pass_barrier, "fill": _fill, "filled": _fill}
#: kinds that whoever comes behind hears of, too
_PASSED_ON: dict[str, _Handler] = {
    "stream_on": _start_stream,
    "stream_off": _drop_stream,
    "alter": _alter_stream,
    "stop": _stop_stream,
    "open_windows": _show_open_windows,
    **dict.fromkeys(
        ("tick", "delete", "pause", "resume", "resume_skip", "flush", "recalculate"), _tell_kernels
    ),
}
