"""Commitment integrity: whether an agent holds the rule, source and update behind its answers.

"[NS]" is the paper on NeuroState-Bench. A bundle holds what this room writes, under ``integrity/``.

    tasks = generate(seed="public-1")                 # 144 tasks in pairs of twins, 306 probes
    lint(tasks)                                       # flaws by name; none in generated tasks
    judge(task.final, "the reply", mode=Mode.JSON)    # match, unclear or no, and why

Nothing here reads the clock, the environment or the network, except an agent that the caller names.
"""
