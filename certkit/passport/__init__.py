"""Passports: an issuer signs an evaluation, and a verifier judges it again under their own trust policy.

    passport = issue(evaluation, issuer="Lab", key=key, not_before=now, not_after=now + VALIDITY)
    passport.passport_id, passport.to_json()

    verification = verify(data, trust=trust.parse(policy, "trust.json"), at=now)
    verification.verdict, verification.exit_code, verification.not_checked

`passport.Predicate` is what a passport holds. Facts, summary, profile and question decide, and the assessment
follows from them. So `verify` judges the signed summary again, and a replay summarises the records again;
there is no second judge.

The signature is over the exact payload bytes; nothing is normalised to verify it. The id of a passport is the
SHA-256 of its payload, never of its file. Nobody trusts a key because it is in the file. Nothing here reads
the clock. Only `keyless.Keyless` and `timestamp.ask`, which sign, reach the network. `verify` with a key
loads neither numpy nor pydantic.
"""
