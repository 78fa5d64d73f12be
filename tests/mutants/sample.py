"""A filter for cosmic-ray: keep a random sample of mutants, none in annotations."""

import random
import re
import sys
from argparse import ArgumentParser, Namespace

from cosmic_ray.tools.filters.filter_app import FilterApp
from cosmic_ray.work_db import WorkDB
from cosmic_ray.work_item import WorkerOutcome, WorkResult

# What changes no behaviour (``int | None`` in an annotation), or only which error is
# raised.
EXCLUDED = re.compile(
    r"core/(ReplaceBinaryOperator_BitOr.*|RemoveDecorator|ExceptionReplacer)"
)


class SampleFilter(FilterApp):
    """Skip all but `n` mutants."""

    def add_args(self, parser: ArgumentParser) -> None:
        parser.add_argument("n", type=int)
        parser.add_argument("--seed", type=int, default=0)

    def filter(self, work_db: WorkDB, args: Namespace) -> None:
        items = sorted(
            work_db.pending_work_items,
            key=lambda item: [str(m) for m in item.mutations],
        )
        usable = [
            i
            for i in items
            if not any(EXCLUDED.match(m.operator_name) for m in i.mutations)
        ]
        kept = {
            item.job_id
            for item in random.Random(args.seed).sample(
                usable, min(args.n, len(usable))
            )
        }
        for item in items:
            if item.job_id not in kept:
                work_db.set_result(
                    item.job_id, WorkResult(worker_outcome=WorkerOutcome.SKIPPED)
                )


if __name__ == "__main__":
    sys.exit(SampleFilter().main())
