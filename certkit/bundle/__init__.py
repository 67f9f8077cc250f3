"""The sealed folder of evidence: `writer` makes it, `folder` reads it.

`manifest` is what people write of the agent and the evaluation, `facts` what is judged and signed of that.
`labels` reads the ratings of people and judges, `identity` names several bundles that are judged together.
"""
