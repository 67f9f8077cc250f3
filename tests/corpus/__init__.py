"""A frozen corpus: bundles that the tests draw themselves, and what certkit answers about them.

    python -m tests.corpus            # exits with 1 and names what differs
    python -m tests.corpus --write    # writes expected.json anew

| module | what it holds |
|---|---|
| `drawing` | an agent and an evaluation of it, drawn from a seed by SHA-256 |
| `bundles` | the bundles that are drawn |
| `logs` | the bundles that are imported from the shared evidence, where that is present |
| `program` | what certkit is asked; the only module that imports it to judge |
| `comparing` | answers as single figures, what may differ, and what does |

``expected.json`` holds the answers. A wanted difference stands in ``differences.toml`` with its reason.
The bundles are written without certkit, so that a change of certkit cannot change them.
"""
