"""Commitment integrity: whether an agent holds the rule, source and update behind its answers.

What this room knows: how tasks with known commitments are generated and checked, how an agent is asked, and
how a reply is read ("[NS]" is the paper on NeuroState-Bench). It does not score; a bundle of evidence holds
what it writes, under ``integrity/``.

    tasks = generate(seed="public-1")                 # 144 tasks in pairs of twins, 306 probes
    lint(tasks)                                       # flaws by name; none in generated tasks
    judge(task.final, "the reply", mode=Mode.JSON)    # match, unclear or no, and why

Nothing here reads the clock, the environment or the network, except an agent that the caller names.
"""
