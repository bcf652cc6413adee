"""Which traces are kept: the samplers that OpenTelemetry names for OTEL_TRACES_SAMPLER."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from penstock.errors import ConfigError

#: what `traceidratio` looks at: the last bytes of a trace's id, the random ones of any generator
_RANGE: Final = 1 << 56
_PREFIX = "parentbased_"
_RATIOS = {"always_on": 1.0, "always_off": 0.0}


@dataclass(frozen=True)
class Sampler:
    """Keeps `ratio` of all traces; `by_parent`: those that begin here, and others as their first
    span was.
    """

    ratio: float
    by_parent: bool = True

    @classmethod
    def by_name(cls, name: str, argument: str) -> Sampler:
        """Return the sampler that two variables describe.

        Raises:
            ConfigError: there is none of this name, or its argument is no ratio.
        """
        kind = name.removeprefix(_PREFIX)
        by_parent = kind != name
        if kind in _RATIOS:
            return cls(_RATIOS[kind], by_parent)
        if kind != "traceidratio":
            known = ", ".join(_PREFIX + k for k in (*_RATIOS, "traceidratio"))
            raise ConfigError(
                "OTEL_TRACES_SAMPLER names no sampler of ours",
                detail=name[:100],
                hint=f"{known}; each also without {_PREFIX}",
            )
        return cls(_ratio(argument), by_parent)

    def keeps(self, trace_id: str, parent_kept: bool | None = None) -> bool:
        """Decide about a span: *parent_kept* None says that it begins its trace."""
        if self.by_parent and parent_kept is not None:
            return parent_kept
        # the same everywhere: services agree on a trace without a word
        return int(trace_id[-14:], 16) < self.ratio * _RANGE


def _ratio(text: str) -> float:
    try:
        ratio = float(text or "1")
    except ValueError:
        ratio = -1.0
    if not 0 <= ratio <= 1:
        raise ConfigError(
            "OTEL_TRACES_SAMPLER_ARG is a number from 0 to 1", detail=text[:100], hint="0.01"
        )
    return ratio
