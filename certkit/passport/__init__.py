"""Passports: a verdict is stated and signed, and later verified under the verifier's own trust policy.

Nothing here reads the clock, or trusts a key that is in the passport's file. Only `keyless.Keyless` and
`timestamp.ask`, which sign, reach the network.

    passport = issue(assessment, summary, issuer=Issuer(name="Lab"), key=key,
                     not_before=now, not_after=now + VALIDITY)
    passport.passport_id, passport.to_json()

    verification = verify(data, trust=trust.parse(policy, "trust.json"), at=now)
    verification.verdict, verification.exit_code, verification.not_checked

Rules. The signature is over the exact payload bytes, and nothing is normalised to verify it. The id of a
passport is the SHA-256 of its payload, never of its file. A step that could not be taken is never passed.

To issue: `claim` (from an assessment) → `statement` → `payload` → `dsse`, `sealed` → `issuing`. To verify:
`sealed`, `dsse`, `payload` → `opening` → `checks`, `logs`, `replay` → `verification`. Only a replay loads the
assessment, and only a certificate loads `sigstore`.
"""
