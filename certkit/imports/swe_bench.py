"""SWE-bench: the report of ``run_evaluation``, the ``results.json`` of a submission, or a folder of them.

| field of the log | field of the record | note |
|---|---|---|
| | agent | `--agent`: the report does not name it |
| | `domain` | `swe-bench`, unless `--domain` says another |
| an id in any list | `task_id` | |
| `resolved_ids`, `resolved` | `outcome` `success` | |
| `error_ids`, `infra_failure_ids`, `no_logs`, `install_fail`, `reset_failed` | `outcome` `harness_error` | |
| `unresolved_ids`, `empty_patch_ids`, `no_generation`, every other list | `outcome` `failure` | |
| `submitted_instances`, `total_instances` or `total` | `outcome` `failure` | see below |
| `incomplete_ids` | | left out: no patch was submitted |

The condition must come from you. `error_ids` hold patches that could not be applied too. Where there is no
`submitted_ids`, the instances that the report counts and does not name are failures called `unnamed-1` and
so on; those that it neither names nor counts are not in the bundle, and the account says so.
Source of the fields: swebench/harness/reporting.py of SWE-bench/SWE-bench.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any, Final

from msgspec import Meta

from certkit.imports.job import Importer, Run, Short
from certkit.imports.task_log import task_fields
from certkit.record.record import Outcome

if TYPE_CHECKING:
    from collections.abc import Iterator

    from certkit.imports.drafts import Draft, Place

_RESOLVED: Final = ("resolved_ids", "resolved")
_ERRORS: Final = ("error_ids", "infra_failure_ids", "no_logs", "install_fail", "reset_failed")
_FAILED: Final = ("unresolved_ids", "empty_patch_ids", "no_generation", "no_apply")
_TRIED: Final = (
    *("submitted_ids", "completed_ids", "generated", "with_logs", "applied"),
    *("test_errored", "test_timeout", "ambiguous_failure_ids"),
)
_LEFT_OUT: Final = "incomplete_ids"
_COUNTS: Final = ("submitted_instances", "total_instances", "total")
MAX_UNNAMED: Final = 100_000
"""Instances that a report may count without naming them."""

Ids = list[Annotated[Short, Meta(min_length=1)]]


class SweBench(Importer):
    """Reports of SWE-bench."""

    suffixes = (".json",)

    def runs(self) -> Iterator[Run]:
        """Yield the instances of each report."""
        for row, place, _ in self.objects():
            lists = self._lists(row, place)
            if lists is not None and self._sound(lists, place):
                yield from self._report(lists, row, place)

    def _lists(self, row: dict[str, Any], place: Place) -> dict[str, dict[str, None]] | None:
        """Return the ids in each list of a report, None where one is no list of ids."""
        names = [*_RESOLVED, *_ERRORS, *_FAILED, *_TRIED, _LEFT_OUT]
        held = {name: row[name] for name in names if isinstance(row.get(name), list)}
        if not {*_RESOLVED} & held.keys():
            self.job.refuse(place.fault("the list resolved_ids", f"the members {', '.join([*row][:12])}"))
            return None
        lists = {name: self.job.typed(ids, Ids, place, f"ids in {name}") for name, ids in held.items()}
        if any(ids is None for ids in lists.values()):
            return None
        return {name: dict.fromkeys(ids or ()) for name, ids in lists.items()}

    def _sound(self, lists: dict[str, dict[str, None]], place: Place) -> bool:
        """Refuse a report whose lists contradict each other."""
        resolved = _union(lists, _RESOLVED)
        wrong = [name for name in (*_ERRORS, *_FAILED, _LEFT_OUT) if resolved.keys() & lists.get(name, {})]
        submitted = lists.get("submitted_ids")
        if wrong:
            self.job.refuse(place.fault("no resolved instance in it", "one", pointer=f"/{wrong[0]}"))
        elif submitted is not None and (rest := [name for name in resolved if name not in submitted]):
            self.job.refuse(place.fault_of("each resolved instance", rest[0], pointer="/submitted_ids"))
        else:
            return True
        return False

    def _report(self, lists: dict[str, dict[str, None]], row: dict[str, Any], place: Place) -> Iterator[Run]:
        draft = self.job.part("", row, place)
        resolved, errors = _union(lists, _RESOLVED), _union(lists, _ERRORS)
        left_out = lists.get(_LEFT_OUT, {})
        named = resolved | errors | _union(lists, (*_FAILED, *_TRIED))
        for name in [name for name in named if name not in left_out]:
            error = name in errors and name not in resolved
            outcome = Outcome.SUCCESS if name in resolved else Outcome.FAILURE
            yield self._run(name, Outcome.HARNESS_ERROR if error else outcome, draft, place)
            if error:
                draft.notes.add("odd", "instances whose evaluation failed, taken as harness errors")
        if left_out:
            draft.notes.add("refused", "instances without a patch", _LEFT_OUT, count=len(left_out))
        yield from self._unnamed(len(named | left_out), lists, row, draft, place)

    def _unnamed(
        self, named: int, lists: dict[str, dict[str, None]], row: dict[str, Any], draft: Draft, place: Place
    ) -> Iterator[Run]:
        """Yield a failure for each instance that the report counts and does not name."""
        if "submitted_ids" in lists:
            return
        counts = ((name, row[name]) for name in _COUNTS if isinstance(row.get(name), int))
        name, count = next(counts, ("", named))
        if not name:
            told = "the report does not say how many instances there are; only those in its lists count"
            draft.notes.add("odd", "reports that may not name every instance", told)
        if not 0 <= count - named <= MAX_UNNAMED:
            expected = f"{named:,} instances, or at most {MAX_UNNAMED:,} more, as the lists name them"
            self.job.refuse(place.fault(expected, f"{count:,}", pointer=f"/{name}"))
            return
        for number in range(count - named):
            draft.notes.add("odd", "instances that the report counts and does not name, taken as failures")
            yield self._run(f"unnamed-{number + 1}", Outcome.FAILURE, draft, place)

    def _run(self, name: str, outcome: Outcome, draft: Draft, place: Place) -> Run:
        fields = task_fields(self.job, draft, name, domain=None, default="swe-bench")
        return Run(
            "", place, {"instance_id": name, "outcome": str(outcome)}, fields | {"outcome": str(outcome)}
        )

    def close(self, draft: Draft) -> dict[str, str]:
        """Fill the rule of success."""
        draft.protocol.setdefault("success_rule", "the report lists the instance as resolved")
        return {"task_id": "the id of the instance"}


def _union(lists: dict[str, dict[str, None]], names: tuple[str, ...]) -> dict[str, None]:
    return {name: None for key in names for name in lists.get(key, {})}
