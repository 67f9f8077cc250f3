"""The simulation study: how often the bounded reading passes an agent that it should not, and one it should.

    python -m tests.study                # prints every cell
    python -m tests.study --write        # rewrites docs/explanation/simulation-study.md and .csv

`rule` is the rule of `certkit.assessment.bounds` over arrays, and is tested against it. `cells` draws
evidence with its own generator, `judged` does so under a judge that errs, `drifting` over lineages of
passports. Many bundles at once, 2,000 a cell. A small form runs in the tests.
"""
