"""Claims are judged by arithmetic that is done a second time here: exact sums and our own intervals."""

from __future__ import annotations

from fractions import Fraction
from math import comb, sqrt
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.stats import ttest_ind_from_stats

from certkit import workflow
from certkit.assessment.recheck import Result, State, parse, recheck
from certkit.assessment.recheck.printed import read, shown
from certkit.ground import files
from certkit.ground.document import to_builtins
from certkit.ground.errors import CertkitError, Exit, InputError
from tests.support.schemas import claims_schema

HEAD = 'schema = "urn:certkit:claims:v1"\nid = "test"\n'


def claims(*texts: str) -> str:
    items = (f'[[claims]]\nid = "c{number}"\nwhere = "here"\n{text}\n' for number, text in enumerate(texts))
    return HEAD + "".join(items)


def check(text: str) -> Result:
    document = parse(claims(text), "test.toml")
    [result] = recheck(document, profiles=workflow.load_profile).claims
    return result


def tail(s: int, n: int, tau: Fraction) -> Fraction:
    """P(θ > τ) under Beta(1 + s, 1 + n - s): the chance of at most s successes in n + 1 draws at τ."""
    return sum((comb(n + 1, i) * tau**i * (1 - tau) ** (n + 1 - i) for i in range(s + 1)), start=Fraction(0))


def own_wilson(s: int, n: int) -> tuple[float, float]:
    """Solve (p - s/n)² = z²·p(1 - p)/n, which is what Wilson's interval is."""
    z2 = 1.959963984540054**2
    a, b, c = 1 + z2 / n, -(2 * s / n + z2 / n), (s / n) ** 2
    root = sqrt(b * b - 4 * a * c)
    return (-b - root) / (2 * a), (-b + root) / (2 * a)


# --- printed numbers


@pytest.mark.parametrize(
    ("text", "low", "high"),
    [
        ("0.89", "0.885", "0.895"),
        ("0.20", "0.195", "0.205"),
        ("0.2", "0.15", "0.25"),
        ("79.5 %", "0.7945", "0.7955"),
        ("36%", "0.355", "0.365"),
        (".5", "0.45", "0.55"),
        ("−4.0 pp", "-0.0405", "-0.0395"),
        ("-4 pp", "-0.045", "-0.035"),
        ("±2.98 %", "0.02975", "0.02985"),
        ("1,000", "999.5", "1000.5"),
        ("1e-6", "0.0000005", "0.0000015"),
        ("< 0.001", "0.001", "0.001"),
        ("> 60 %", "0.6", "0.6"),
        (414, "414", "414"),
    ],
)
def test_the_digits_are_the_tolerance(text: str | int, low: str, high: str) -> None:
    number = read(text)
    assert (number.low, number.high) == (Fraction(low), Fraction(high))


@pytest.mark.parametrize(
    "text",
    [
        "",
        ".",
        "%",
        "1 2",
        "0.8.9",
        "nan",
        "inf",
        "1_000",
        "1,00",
        "٣",
        "+-1",
        "1e999",
        True,
        None,
        2**60,
        pytest.param("<" + " " * 50000 + "x", id="many blanks, in proportion to their number"),
    ],
)
def test_what_is_no_printed_number_is_refused(text: object) -> None:
    with pytest.raises(ValueError, match=r"number"):
        read(text)


@settings(deadline=None)  # scipy is imported by the first example
@given(st.decimals(min_value=-1000, max_value=1000, places=4), st.integers(0, 4))
def test_every_value_lies_within_what_it_prints_as(value: Any, places: int) -> None:
    number = read(f"{value:.{places}f}")
    assert number.low <= Fraction(value) <= number.high
    assert number.high - number.low == Fraction(1, 10**places)


def test_computed_numbers_are_shown_as_people_write_them() -> None:
    assert [shown(Fraction(14000)), shown(Fraction(1, 3)), shown(0.5)] == ["14,000", "0.3333", "0.5"]


# --- posteriors


@settings(deadline=None)  # scipy is imported by the first example
@given(n=st.integers(1, 40), data=st.data(), tau=st.sampled_from(["0.60", "0.80", "0.95"]))
def test_a_posterior_that_is_rounded_right_holds_and_any_other_does_not(
    n: int, data: st.DataObject, tau: str
) -> None:
    s = data.draw(st.integers(0, n))
    exact = tail(s, n, Fraction(tau))
    right = f"{float(exact):.3f}"
    # A tie may round either way.
    assume(abs(abs(exact - Fraction(right)) - Fraction(1, 2000)) > Fraction(1, 10**8))
    form = f'kind = "posterior"\nsuccesses = {s}\nn = {n}\ntau = "{tau}"\nprinted = '
    assert check(f'{form}"{right}"').state is State.CONSISTENT
    wrong = f"{(float(right) + 0.5) % 1:.3f}"
    assert check(f'{form}"{wrong}"').state is State.IMPOSSIBLE


@settings(deadline=None)  # scipy is imported by the first example
@given(n=st.integers(1, 60), percent=st.integers(0, 100), printed=st.integers(0, 100))
def test_the_search_finds_a_count_where_trying_them_all_does(n: int, percent: int, printed: int) -> None:
    half, tau = Fraction(1, 200), Fraction(4, 5)
    rate, wanted = Fraction(percent, 100), Fraction(printed, 100)
    counts = [s for s in range(n + 1) if abs(Fraction(s, n) - rate) <= half]
    distances = [abs(tail(s, n, tau) - wanted) - half for s in counts]
    assume(all(abs(distance) > Fraction(1, 10**8) for distance in distances))
    result = check(
        f'kind = "posterior"\nrate = "{percent} %"\nn = {n}\ntau = "0.80"\nprinted = "{printed / 100:.2f}"'
    )
    assert (result.state is State.CONSISTENT) == any(distance < 0 for distance in distances)


@pytest.mark.parametrize(
    ("rate", "tau", "printed", "state"),
    [
        ("79.5 %", "0.80", "0.91", State.IMPOSSIBLE),
        ("79.5 %", "0.80", "0.34", State.UNDECIDABLE),
        ("79.96 %", "0.80", "0.50", State.UNDECIDABLE),
        ("82 %", "0.80", "0.91", State.UNDECIDABLE),
        ("30 %", "0.40", "0.91", State.UNDECIDABLE),
    ],
)
def test_without_n_only_what_holds_for_every_n_is_said(
    rate: str, tau: str, printed: str, state: State
) -> None:
    result = check(f'kind = "posterior"\nrate = "{rate}"\ntau = "{tau}"\nprinted = "{printed}"')
    assert result.state is state
    assert result.missing == (("n",) if state is State.UNDECIDABLE else ())


@settings(deadline=None)  # scipy is imported by the first example
@given(n=st.integers(1, 80), data=st.data())
def test_a_rate_at_or_below_a_threshold_above_half_never_has_a_posterior_above_half(
    n: int, data: st.DataObject
) -> None:
    s = data.draw(st.integers(0, n - 1))
    assert tail(s, n, max(Fraction(1, 2), Fraction(s, n))) <= Fraction(1, 2)


# --- intervals and tests


@settings(deadline=None)  # scipy is imported by the first example
@given(n=st.integers(2, 400), data=st.data())
def test_wilsons_interval_holds_and_a_wider_one_does_not(n: int, data: st.DataObject) -> None:
    s = data.draw(st.integers(1, n - 1))
    low, high = own_wilson(s, n)
    assume(all(abs(value * 1000 % 1 - 0.5) > 1e-6 for value in (low, high, (high - low) / 2)))
    form = f'kind = "interval"\nsuccesses = {s}\nn = {n}\n'
    assert check(f'{form}low = "{low:.3f}"\nhigh = "{high:.3f}"').state is State.CONSISTENT
    assert check(f'{form}half = "±{(high - low) / 2:.3f}"').state is State.CONSISTENT
    assert check(f'{form}half = "±{(high - low) / 2 + 0.2:.3f}"').state is State.IMPOSSIBLE


def test_a_wald_interval_under_wilsons_name_is_named() -> None:
    wald = 1.959963984540054 * sqrt(0.362 * 0.638 / 1000)
    assert f"{wald * 100:.2f}" == "2.98"
    form = 'kind = "interval"\nrate = "36.2 %"\nn = 1000\nhalf = "±2.98 %"\n'
    assert check(f'{form}method = "wald"').state is State.CONSISTENT
    result = check(form)
    assert result.state is State.INCONSISTENT
    assert "Wald" in result.arithmetic


def test_a_rate_that_no_count_gives_is_impossible() -> None:
    # 1/7 is 14.3 %, 2/7 is 28.6 %: nothing of 7 prints as 20.0 %.
    result = check('kind = "interval"\nrate = "20.0 %"\nn = 7\nhalf = "±0.3"')
    assert (result.state, result.computed) == (State.IMPOSSIBLE, None)
    assert "no whole number" in result.arithmetic


def test_an_interval_without_n_and_a_search_too_wide_are_undecidable() -> None:
    assert check('kind = "interval"\nrate = "36.2 %"\nhalf = "±3 %"').missing == ("n",)
    wide = check('kind = "interval"\nrate = "0"\nn = 1000000\nhalf = "0.1"')
    assert wide.missing == ("digits of rate",)


# --- relations


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ('kind = "aggregate"\nparts = ["10 %", "20 %"]\nprinted = "15 %"', State.CONSISTENT),
        ('kind = "aggregate"\nparts = ["10 %", "20 %"]\nprinted = "18 %"', State.INCONSISTENT),
        ('kind = "aggregate"\nparts = ["10 %", "20 %"]\nprinted = "21.5 %"', State.IMPOSSIBLE),
        (
            'kind = "aggregate"\nparts = ["10 %", "20 %"]\nweights = [1, 4]\nprinted = "18 %"',
            State.CONSISTENT,
        ),
        (
            'kind = "aggregate"\nparts = ["10 %", "20 %"]\nweights = [1, 4]\nprinted = "15 %"',
            State.IMPOSSIBLE,
        ),
        ('kind = "aggregate"\nparts = [2, 3]\nhow = "sum"\nprinted = 5', State.CONSISTENT),
        ('kind = "aggregate"\nparts = [2, 3]\nhow = "sum"\nprinted = 6', State.IMPOSSIBLE),
        ('kind = "difference"\nminuend = "90 %"\nsubtrahend = "70 %"\nprinted = "20 pp"', State.CONSISTENT),
        ('kind = "difference"\nminuend = "90 %"\nsubtrahend = "70 %"\nprinted = "21 pp"', State.CONSISTENT),
        (
            'kind = "difference"\nminuend = "90 %"\nsubtrahend = "70 %"\nprinted = "-20 pp"',
            State.INCONSISTENT,
        ),
        ('kind = "difference"\nminuend = "90 %"\nsubtrahend = "70 %"\nprinted = "22 pp"', State.IMPOSSIBLE),
        ('kind = "product"\nfactors = [414]\ndivisors = [1800]\nprinted = "23.0 %"', State.CONSISTENT),
        ('kind = "product"\nfactors = [414]\ndivisors = [1800]\nprinted = 0.20', State.IMPOSSIBLE),
        ('kind = "every"\noperator = ">"\nbound = 0\nvalues = ["1.0", "0.0"]', State.CONSISTENT),
        ('kind = "every"\noperator = ">"\nbound = 0\nvalues = ["1.0", "-0.1"]', State.IMPOSSIBLE),
        ('kind = "every"\noperator = "<="\nbound = 1\nvalues = ["1.0", 2]', State.IMPOSSIBLE),
        ('kind = "every"\noperator = "<="\nbound = 1\nvalues = ["< 1", "<= 0.5"]', State.CONSISTENT),
        ('kind = "every"\noperator = "<"\nbound = 1\nvalues = ["< 1"]', State.CONSISTENT),
        ('kind = "every"\noperator = "<="\nbound = 1\nvalues = ["< 4"]', State.INCONSISTENT),
        ('kind = "every"\noperator = "<="\nbound = 1\nvalues = [">= 1"]', State.INCONSISTENT),
        ('kind = "every"\noperator = "<="\nbound = 1\nvalues = ["> 1"]', State.IMPOSSIBLE),
        ('kind = "every"\noperator = "<="\nbound = 1\nvalues = ["< 4", 2]', State.IMPOSSIBLE),
        ('kind = "same"\nstatements = [{where="a", says="0.2"}, {where="b", says="0.20"}]', State.CONSISTENT),
        (
            'kind = "same"\nstatements = [{where="a", says="0.2"}, {where="b", says="0.26"}]',
            State.INCONSISTENT,
        ),
        (
            'kind = "same"\nstatements = [{where="a", says="> 2"}, {where="b", says=">= 2"}]',
            State.INCONSISTENT,
        ),
        (
            'kind = "same"\nstatements = [{where="a", says="One  way"}, {where="b", says="one way"}]',
            State.CONSISTENT,
        ),
        (
            'kind = "same"\nstatements = [{where="a", says="one way"}, {where="b", says="2"}]',
            State.INCONSISTENT,
        ),
    ],
)
def test_relations(text: str, state: State) -> None:
    assert check(text).state is state


# --- tiers


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ('tier = 1\nmetrics = { r_op = "45.9 %" }', State.IMPOSSIBLE),
        ('tier = 1\nmetrics = { r_op = "60.1 %" }', State.UNDECIDABLE),
        ('tier = 2\nattained = false\nmetrics = { r_op = "79.5 %" }', State.CONSISTENT),
        ('tier = 2\nmetrics = { cascade_penalty = "21.6 pp" }', State.IMPOSSIBLE),
        ('tier = 1\nmetrics = { cascade_penalty = "21.6 pp" }', State.UNDECIDABLE),
        ('tier = 7\nmetrics = { r_op = "99 %" }', State.IMPOSSIBLE),
        ('tier = 2\nprofile = "hb-eval-2025"\nmetrics = { frr_2025 = "0.84" }', State.IMPOSSIBLE),
    ],
)
def test_tiers_against_a_profile(text: str, state: State) -> None:
    assert check(f'kind = "tier"\n{text}').state is state


def test_a_row_that_the_digits_leave_open_is_missing() -> None:
    result = check('kind = "tier"\ntier = 2\nmetrics = { r_op = "80 %" }')
    assert result.state is State.UNDECIDABLE
    assert "r_op" in result.missing


# --- the document


def test_the_worst_comes_first_and_decides() -> None:
    good = 'kind = "aggregate"\nparts = [1, 2]\nhow = "sum"\nprinted = 3'
    open_ = 'kind = "interval"\nrate = "36 %"\nhalf = "3 %"'
    turned = 'kind = "difference"\nminuend = 3\nsubtrahend = 1\nprinted = -2'
    bad = 'kind = "aggregate"\nparts = [1, 2]\nhow = "sum"\nprinted = 4'
    for texts, states, code in (
        ([good], ["consistent"], Exit.OK),
        ([good, open_], ["undecidable", "consistent"], Exit.INSUFFICIENT),
        ([good, open_, turned], ["inconsistent", "undecidable", "consistent"], Exit.NEGATIVE),
        ([good, bad, turned], ["impossible", "inconsistent", "consistent"], Exit.NEGATIVE),
    ):
        done = recheck(parse(claims(*texts), "test.toml"), profiles=workflow.load_profile)
        assert [str(result.state) for result in done.claims] == states
        assert done.exit_code == code
        assert sum(done.counts.values()) == len(texts)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "id = 1",
        HEAD,
        HEAD + "claims = []",
        HEAD + "claims = [1]",
        HEAD + 'surprise = 1\n[[claims]]\nid = "a"',
        claims('kind = "nonsense"'),
        claims("kind = 3"),
        claims('kind = ["posterior"]'),
        claims('kind = "posterior"'),
        claims('kind = "posterior"\nsuccesses = 3\nn = 2\ntau = "0.8"\nprinted = "0.9"'),
        claims('kind = "posterior"\nsuccesses = 3\nrate = "3 %"\nn = 9\ntau = "0.8"\nprinted = "0.9"'),
        claims('kind = "posterior"\nsuccesses = 3\ntau = "0.8"\nprinted = "0.9"'),
        claims('kind = "posterior"\nrate = "130 %"\nn = 9\ntau = "0.8"\nprinted = "0.9"'),
        claims('kind = "posterior"\nrate = "< 3 %"\nn = 9\ntau = "0.8"\nprinted = "0.9"'),
        claims('kind = "posterior"\nrate = "3 %"\nn = 0\ntau = "0.8"\nprinted = "0.9"'),
        claims('kind = "posterior"\nrate = "3 %"\nn = []\ntau = "0.8"\nprinted = "0.9"'),
        claims('kind = "posterior"\nrate = "3 %"\nn = 9\ntau = []\nprinted = "0.9"'),
        claims('kind = "interval"\nrate = "3 %"\nn = 9'),
        claims('kind = "interval"\nrate = "3 %"\nn = 9\nhalf = nan'),
        claims('kind = "interval"\nrate = "3 %"\nn = 9\nhalf = "0.1"\nmethod = "jeffreys"'),
        claims('kind = "t-test"\nfirst = {mean=1, sd=1, n=2}\nsecond = {mean=1, sd="0", n=2}\nprinted = 1'),
        claims('kind = "aggregate"\nparts = [1]\nweights = [1, 2]\nprinted = 1'),
        claims('kind = "aggregate"\nparts = [1]\nweights = [1]\nhow = "sum"\nprinted = 1'),
        claims('kind = "product"\nfactors = [1]\ndivisors = [0]\nprinted = 1'),
        claims('kind = "product"\nfactors = [-1]\nprinted = 1'),
        claims('kind = "tier"\ntier = 1\nmetrics = { nonsense = 1 }'),
        claims('kind = "tier"\ntier = 1\nmetrics = {}'),
        claims('kind = "same"\nstatements = [{where="a", says="1"}]'),
        claims('kind = "difference"\nminuend = 1\nsubtrahend = 1\nprinted = 2020-01-01'),
        claims('kind = "difference"\nminuend = 1\nsubtrahend = 1\nprinted = 0').replace("c0", "A b"),
        claims(*['kind = "difference"\nminuend = 1\nsubtrahend = 1\nprinted = 0'] * 2).replace("c1", "c0"),
    ],
)
def test_a_malformed_document_is_refused_by_name(text: str) -> None:
    with pytest.raises(InputError) as raised:
        parse(text, "test.toml")
    assert raised.value.code == "recheck.invalid"
    assert str(raised.value).startswith("test.toml")


OF_2025 = files.packaged("templates", "recheck", "hb-eval-2025.toml").read_text(encoding="utf-8")
PAPERS = files.packaged("templates", "recheck", "hb-eval-papers.toml").read_text(encoding="utf-8")


@settings(deadline=None)  # scipy is imported by the first example
@given(data=st.data())
def test_a_damaged_document_is_read_or_refused_and_never_breaks(data: st.DataObject) -> None:
    blocks = PAPERS.split("\n[[claims]]\n")
    block = data.draw(st.sampled_from(blocks[1:]))
    at = data.draw(st.integers(0, len(block)))
    junk = data.draw(st.text(alphabet='0159.,-+%<>="[]{}\n\x00é', max_size=4))
    text = "\n[[claims]]\n".join([blocks[0], block[:at] + junk + block[at + data.draw(st.integers(0, 3)) :]])
    try:
        done = recheck(parse(text, "test.toml"), profiles=workflow.load_profile)
    except CertkitError as error:
        assert error.code in {"recheck.invalid", "profile.unknown"}  # noqa: PT017 - one of two outcomes
    else:
        assert done.exit_code in {Exit.OK, Exit.NEGATIVE, Exit.INSUFFICIENT}


# --- the papers

WRONG = {
    "§3.1's posterior": ["posterior-example-820"],
    "Table 8's posteriors": [
        f"table-8-posterior-{name}"
        for name in ("claude", "claude-any-n", "maverick", "gpt-oss", "gpt-4o", "llama-3.3")
    ],
    "Table 8's tiers": ["table-8-tier-1-gpt-4o", "table-8-tier-1-llama-3.3"],
    "methodology B's aggregate": ["methodology-b-models", "methodology-b-domains"],
    "methodology A's aggregate": ["methodology-a-domains"],
    "TI of 2025": ["ti-scale-2025"],
    "thresholds of two papers": [
        *(f"pei-tier-{tier}-of-both-papers" for tier in (1, 2, 3)),
        "frr-tier-3-of-both-papers",
        "irs-tier-3-of-both-papers",
    ],
    "CSI": ["csi-largest-deviation", "csi-trend", "csi-tier-1", "csi-tier-2", "csi-tier-3"],
    "Table 3's aggregate interval": ["table-3-interval-aggregate"],
    "IRS": ["irs-aggregate", "irs-tier-2-threshold"],
    "signs of Table 4": [
        f"table-4-gap-{name}"
        for name in (
            "mathematics",
            "cybersecurity",
            "robotics",
            "medical",
            "logistics",
            "emergency",
            "aggregate",
        )
    ],
    "signs of Table 6": [
        f"table-6-gap-{name}" for name in ("cybersecurity", "emergency", "medical", "logistics", "robotics")
    ],
    "Δ > 0 everywhere": ["every-gap-positive"],
    "EDM admission": ["edm-admission"],
    "domains": ["number-of-domains"],
    "R_op over all trials": ["r-op-runs", "table-5-fault-runs-maverick"],
    "success rule": ["success-rule"],
    "SIL": ["sil-tier-1", "sil-tier-2", "sil-tier-3"],
}
RIGHT = [
    "table-3-wald-cluster",
    "methodology-a-domains-mean",
    "methodology-a-nominal",
    "methodology-a-models",
    "methodology-b-gaps",
    "irs-from-counts",
    "irs-2025",
    "evaluations",
    "table-8-claude-not-tier-2",
    "frr-tier-1-of-both-papers",
]


@pytest.fixture(scope="module")
def papers() -> dict[str, Result]:
    done = recheck(parse(PAPERS, "papers"), profiles=workflow.load_profile)
    assert done.exit_code == Exit.NEGATIVE
    return {result.id: result for result in done.claims}


@pytest.mark.parametrize("contradiction", WRONG)
def test_every_known_contradiction_of_the_papers_is_found(
    papers: dict[str, Result], contradiction: str
) -> None:
    for name in WRONG[contradiction]:
        assert papers[name].state in {State.IMPOSSIBLE, State.INCONSISTENT}, name


def test_a_bound_that_gives_no_sil_is_inconsistent_with_it(papers: dict[str, Result]) -> None:
    assert {papers[name].state for name in WRONG["SIL"]} == {State.INCONSISTENT}


def test_what_holds_in_the_papers_comes_out_consistent(papers: dict[str, Result]) -> None:
    assert [name for name in RIGHT if papers[name].state is not State.CONSISTENT] == []


def test_the_papers_posterior_is_the_exact_sum(papers: dict[str, Result]) -> None:
    computed = papers["posterior-example-820"].computed
    assert computed is not None
    assert abs(computed.low - tail(820, 1000, Fraction(4, 5))) < Fraction(1, 10**9)


def test_counts_that_print_as_82_percent_hide_the_contradiction(papers: dict[str, Result]) -> None:
    fits = [
        s for s in range(815, 826) if abs(tail(s, 1000, Fraction(4, 5)) - Fraction("0.89")) < Fraction(1, 200)
    ]
    assert fits == [816]
    assert papers["posterior-example-82-percent"].state is State.CONSISTENT


def test_the_papers_use_every_kind_of_claim_but_repeats(papers: dict[str, Result]) -> None:
    of_2025 = {claim.kind for claim in parse(OF_2025, "hb-eval-2025.toml").claims}
    kinds = claims_schema()["properties"]["claims"]["items"]["discriminator"]["mapping"]
    assert {result.kind for result in papers.values()} | of_2025 == set(kinds) - {"repeats"}


def test_the_result_in_json_values(papers: dict[str, Result]) -> None:
    document = to_builtins(papers["irs-aggregate"])
    assert document["state"] == "impossible"
    assert document["computed"] == {"low": 0.23, "high": 0.23}
    assert papers["edm-admission"].computed is None


def fits(percent: int, n: int) -> State:
    """What trying every count of `n` finds."""
    rate, half = Fraction(percent, 100), Fraction(1, 200)
    found = any(abs(Fraction(s, n) - rate) <= half for s in range(n + 1))
    return State.CONSISTENT if found else State.IMPOSSIBLE


@pytest.mark.parametrize("n", [7, 24, 60])
def test_a_count_is_one_that_trying_all_of_them_finds(n: int) -> None:
    for percent in range(101):
        claim = f'rate = "{percent} %"\nn = {n}'
        assert check(f'kind = "count"\n{claim}').state is fits(percent, n), claim
        assert check(f'kind = "repeats"\n{claim}\nrepeats = 2').state is fits(percent, 2 * n), claim


@pytest.mark.parametrize(("count", "state"), [(29, State.CONSISTENT), (24, State.IMPOSSIBLE)])
def test_a_count_that_is_printed_is_held_against_its_rate(count: int, state: State) -> None:
    found = check(f'kind = "count"\nrate = "5.8 %"\nn = 500\ncount = {count}')
    assert found.state is state
    assert found.arithmetic.startswith("it is 29 of 500")


@pytest.mark.parametrize(
    ("text", "state"),
    [
        ('rate = "80 %"\nn = 400\nprinted = "2.0 %"', State.CONSISTENT),
        ('rate = "80 %"\nn = 100\nprinted = "2.0 %"', State.IMPOSSIBLE),
        ('rate = "50 %"\nn = 100\nprinted = "5.000 %"', State.CONSISTENT),
        ('sd = "3.0"\nn = 9\nprinted = "1.0"', State.CONSISTENT),
        ('sd = "3.0"\nn = 4\nprinted = "1.0"', State.IMPOSSIBLE),
    ],
)
def test_a_standard_error_is_that_of_a_rate_or_of_a_mean(text: str, state: State) -> None:
    assert check(f'kind = "standard-error"\n{text}').state is state


def test_a_standard_error_is_that_of_one_thing() -> None:
    for text in (
        'n = 2\nprinted = "1.0"',
        'n = 2\nsd = "1"\nrate = "0.5"\nprinted = "1"',
    ):
        with pytest.raises(InputError, match="give rate or sd"):
            parse(claims(f'kind = "standard-error"\n{text}'), "test.toml")


def test_welchs_t_is_that_of_the_printed_moments() -> None:
    first, second = (12.34, 2.10, 40), (11.02, 3.05, 30)
    t = ttest_ind_from_stats(*first, *second, equal_var=False).statistic
    text = "".join(
        f'{name} = {{ mean = "{mean:.2f}", sd = "{sd:.2f}", n = {n} }}\n'
        for name, (mean, sd, n) in (("first", first), ("second", second))
    )
    assert check(f'kind = "t-test"\n{text}printed = "{t:.2f}"').state is State.CONSISTENT
    assert check(f'kind = "t-test"\n{text}printed = "{t + 0.05:.2f}"').state is State.IMPOSSIBLE


def test_the_tables_of_2025_do_not_follow_from_one_another() -> None:
    document = parse(OF_2025, "hb-eval-2025.toml")
    done = {item.id: item for item in recheck(document, profiles=workflow.load_profile).claims}
    means = {"react": (42.3, 4.2), "reflexion": (76.8, 3.6), "ap-edm": (94.2, 2.1)}
    pairs = (("ap-edm", "react", 247), ("ap-edm", "reflexion", 93), ("reflexion", "react", 139))
    for one, other, rounded in pairs:
        t = float(ttest_ind_from_stats(*means[one], 500, *means[other], 500, equal_var=False).statistic)
        assert round(t) == rounded
        found = done[f"table-5-t-{one}-{other}"]
        assert found.state is State.IMPOSSIBLE
        assert found.computed is not None
        assert found.computed.low < t < found.computed.high
    refused = {name for name, item in done.items() if item.state is State.IMPOSSIBLE}
    assert {
        "failures-of-ap-edm",
        "table-6-mean-react",
        "split-cascade",
        "table-7-additional-bounds",
    } <= refused
    assert done["table-4-gap-react"].state is State.CONSISTENT


def test_what_the_neurostate_paper_says_of_its_counts() -> None:
    path = files.packaged("templates", "recheck", "neurostate.toml")
    done = recheck(parse(path.read_text(encoding="utf-8"), "neurostate.toml"), profiles=workflow.load_profile)
    found = {result.id: result.state for result in done.claims if result.state is not State.CONSISTENT}
    assert found == {
        **dict.fromkeys(
            ["success-leader", "success-open", "success-frontier", "success-local"], State.IMPOSSIBLE
        ),
        **dict.fromkeys(["complements-bootstrap", "complements-delta", "leader"], State.INCONSISTENT),
    }
    assert done.counts[State.CONSISTENT] == 66
