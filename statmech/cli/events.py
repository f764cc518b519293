"""Messages to the user about logged events of a run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from statmech.results.store import format_version

if TYPE_CHECKING:
    from statmech.scenarios.base import AbstractScenario


def describe_event(event: dict[str, Any], scenario: AbstractScenario) -> str:
    """Return the message for a logged event, or an empty string if only programs need the event."""
    match event["event"]:
        case "failed":
            runs = f"{_format_grid_point(scenario, event['cell'])}seeds {_format_seeds(event['seeds'])}"
            return f"{runs}: attempt {event['attempt']} failed: {event['error']}"
        case "damaged":
            return f"chunk {event['block']} is corrupted and is recomputed ({'; '.join(event['faults'][:3])})"
        case "restored":
            return f"{event['file']} is corrupted and is rewritten"
        case "grown":
            return "\n".join(["the sweep has grown, and its stored runs are kept:", *event["differences"]])
        case "version":
            stored_version, running_version = format_version(event["stored"]), format_version(event["running"])
            versions = f"the stored runs are by {stored_version}, new ones by {running_version}"
            return f"{versions}; `statmech verify` recomputes some of each"
    return ""


def _format_grid_point(scenario: AbstractScenario, index: list[int]) -> str:
    """Format the parameters at a grid point as text, such as "rule hebb, K 3, "."""
    axes = zip(index, scenario.dimensions.values(), strict=True)
    values = {name: values[i] for i, group in axes for name, values in group.items()}
    return "".join(f"{name} {value if isinstance(value, str) else f'{value:g}'}, " for name, value in values.items())


def _format_seeds(seeds: list[int]) -> str:
    """Format seeds as text, consecutive seeds as a range such as "0 to 63"."""
    first, last = seeds[0], seeds[-1]
    if len(seeds) > 1 and last - first + 1 == len(seeds):
        return f"{first} to {last}"
    return ", ".join(map(str, seeds))
