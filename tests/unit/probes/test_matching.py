"""Every rule of the matcher both ways: what a reply names, whether it keeps the contract, and why."""

from __future__ import annotations

from typing import Any

import pytest

from certkit.probes.matching import ReplyGrade, judge, words
from certkit.probes.records import Ask, Kind, Mode, ProbeQuestion, SourcedValue

MATCH, UNCLEAR, NO = ReplyGrade.MATCH, ReplyGrade.UNCLEAR, ReplyGrade.NO


def question(kind: Kind, *options: Any) -> ProbeQuestion:
    return ProbeQuestion(
        prompt="?",
        kind=kind,
        gold=options[0],
        lure=options[1],
        options=options,
        ask=Ask(aim="value"),
        state_version=0,
    )


NAME = question("label", "Adaeze", "Borys", "Chiara")
NUMBER = question("number", 1250, 125, 980)
SET = question(
    "set", ("cold-chain training", "sealed cart"), ("day pass", "sealed cart"), ("keycard", "sealed cart")
)
PAIR = question(
    "pair",
    SourcedValue(source="river atlas", value="420"),
    SourcedValue(source="field diary", value="420"),
    SourcedValue(source="travel guide", value="77"),
)
LETTER = question("label", "A", "B")
ACCENTED = question("label", "Łucja", "Zsófia", "Søren")
HINDI = question("label", "राम", "रिम", "सीता")


REPLIES = [
    # the contract
    (NAME, '{"answer": "Adaeze", "confidence": 0.9}', MATCH, False),
    (NAME, '```json\n{"answer": "Adaeze"}\n```', MATCH, False),
    (NAME, 'I think so.\n```json\n{"answer": "Adaeze"}\n```', MATCH, True),
    (NAME, '```json\n{"answer": "Adaeze"}\n``` No, Borys.', UNCLEAR, True),
    (NAME, 'Here it is: {"answer": "Adaeze"}', UNCLEAR, True),
    (NAME, '{"answer": "Adaeze"', MATCH, True),
    (NAME, '{"answer": ["Adaeze"]}', MATCH, True),
    (NAME, '{"answer": "Borys", "answer": "Adaeze"}', UNCLEAR, True),
    (NAME, '{"answer": "Adaeze", "reason": "not Borys"}', UNCLEAR, True),
    (NAME, '{"answer": "Adaeze", "confidence": 0.9, "": {"note": ["in fact Chiara"]}}', UNCLEAR, True),
    (NAME, '{"answer": "Adaeze", "confidence": "high"}', MATCH, True),
    (NAME, '{"answer": "Adaeze", "confidence": 90}', MATCH, True),
    (NAME, '{"reply": "Adaeze"}', UNCLEAR, True),
    (NUMBER, '{"answer": 1250}', MATCH, False),
    (NUMBER, '{"answer": "1250"}', MATCH, False),
    (NUMBER, '{"answer": true}', NO, True),
    (SET, '{"answer": ["sealed cart", "cold-chain training"]}', MATCH, False),
    (PAIR, '{"answer": {"source": "river atlas", "value": "420"}}', MATCH, False),
    (PAIR, '{"answer": {"source": "river atlas", "value": 420}}', MATCH, False),
    (PAIR, '{"answer": {"source": "river atlas"}}', NO, True),
    # what is read
    (NAME, "Having weighed all that was said, it is nobody but Adaeze.", UNCLEAR, True),
    (NAME, "I have thought about it. Answer: Adaeze", MATCH, True),
    (NAME, "Weighed.\n**Final answer:** Adaeze", MATCH, True),
    (NAME, "My answer is Chiara. The banned one gave this\nanswer: Adaeze", UNCLEAR, True),
    (NAME, "Who must NOT go.\nAnswer: Adaeze", UNCLEAR, True),
    (NAME, "Who can\u2019t go.\nAnswer: Adaeze", UNCLEAR, True),
    (NAME, 'The one who must NOT go:\n```json\n{"answer":"Adaeze"}\n```', UNCLEAR, True),
    (NAME, '```\nBorys\n```\n```json\n{"answer":"Adaeze"}\n```', UNCLEAR, True),
    (NAME, "Answer: Adaeze or Borys", UNCLEAR, True),
    (NAME, "The wrong answer: Adaeze", UNCLEAR, True),
    (NAME, "", NO, True),
    (NAME, '{"answer": ""}', NO, False),
    # words, markup, case, punctuation
    (NAME, "adaeze", MATCH, True),
    (NAME, "It\u2019s **ADAEZE**!", MATCH, True),
    (NAME, "'Adaeze'", MATCH, True),
    (NAME, "Ada\u00adeze", MATCH, True),
    (NAME, "* Adaeze", MATCH, True),
    (NAME, "- Adaeze", MATCH, True),
    (NAME, "> 2) **Adaeze**", MATCH, True),
    (NAME, "Answer:\n1. Adaeze", MATCH, True),
    (NAME, "-Adaeze", UNCLEAR, True),
    (NAME, "Borys?\n- Adaeze", UNCLEAR, True),
    (NAME, "Adaeze, Adaeze", UNCLEAR, True),
    (LETTER, "A", MATCH, True),
    (LETTER, "an A", MATCH, True),
    (LETTER, "B", NO, True),
    (LETTER, "", NO, True),
    (SET, "- a sealed cart\n- cold-chain training", MATCH, True),
    (SET, "sealed cart\ncold-chain training", MATCH, True),
    (NUMBER, "- 1250", UNCLEAR, True),
    (NAME, "[ ] Adaeze", UNCLEAR, True),
    (NAME, "- [ ] Adaeze", UNCLEAR, True),
    (NAME, "( ) Adaeze", UNCLEAR, True),
    (NAME, "[Adaeze]", MATCH, True),
    (NAME, '{"answer": "!Adaeze"}', UNCLEAR, False),
    (NAME, "! **Adaeze**", UNCLEAR, True),
    (NAME, "Adaeze?", UNCLEAR, True),
    (NAME, "<del>Adaeze</del>", UNCLEAR, True),
    (NAME, "[Adaeze](https://example.org/Borys)", UNCLEAR, True),
    (NAME, "Adaeze \u274c", UNCLEAR, True),
    (NAME, "Adaeze's sister", NO, True),
    (NAME, "Adaezes", NO, True),
    (NAME, "Chiara", NO, True),
    # negation and doubt: more than the answer, whatever it says
    (NAME, "Adaeze is not eligible", UNCLEAR, True),
    (NAME, "Adaeze is out of the question", UNCLEAR, True),
    (NAME, "Never Borys: Adaeze", UNCLEAR, True),
    (NAME, "Adaeze rather than Borys", UNCLEAR, True),
    (NAME, "not Adaeze", UNCLEAR, True),
    (NAME, "It isn't Adaeze", UNCLEAR, True),
    (NAME, "anyone but Adaeze", UNCLEAR, True),
    (NAME, "not Borys", NO, True),
    # several options
    (NAME, "Adaeze and Borys", UNCLEAR, True),
    (NAME, "Borys and Chiara", NO, True),
    # numbers
    (NUMBER, "1,250", MATCH, True),
    (NUMBER, "1\u2019250", MATCH, True),
    (NUMBER, "1\u202f250.", MATCH, True),
    (NUMBER, "between 1250 and 1251", UNCLEAR, True),
    (NUMBER, "1250\u20131260", UNCLEAR, True),
    (NUMBER, "1250.5", UNCLEAR, True),
    (NUMBER, "-1250", UNCLEAR, True),
    (NUMBER, "\u22121250", UNCLEAR, True),
    (NUMBER, ".1250", UNCLEAR, True),
    (NUMBER, "0,1250", UNCLEAR, True),
    (NUMBER, "~1250", UNCLEAR, True),
    *((NUMBER, f"1250{sign}1250", UNCLEAR, True) for sign in "/:- ;"),
    (NUMBER, "1250 by 1250", UNCLEAR, True),
    (NUMBER, "5. 1250", UNCLEAR, True),
    (NUMBER, "125\u2070", NO, True),
    (NUMBER, "1\u00b250", NO, True),
    (NUMBER, "1\u2082\uff1550", NO, True),
    (NUMBER, "1 250", NO, True),
    (NUMBER, "1.250", NO, True),
    (NUMBER, "1250 %", UNCLEAR, True),
    (NUMBER, "1250kg", NO, True),
    (NUMBER, "1,250.5", NO, True),
    (NUMBER, "12500", NO, True),
    (NUMBER, "1250, formerly 980", UNCLEAR, True),
    # sets
    (SET, "sealed cart and cold-chain training", MATCH, True),
    (SET, "Cold chain training; sealed cart", MATCH, True),
    (SET, "sealed cart", NO, True),
    (SET, "cold-chain training, day pass and sealed cart", UNCLEAR, True),
    (SET, '{"answer": ["sealed cart", "cold-chain training", "a lamp"]}', UNCLEAR, False),
    (SET, '{"answer": ["cold-chain", "training sealed", "cart"]}', NO, False),
    # pairs
    (PAIR, "420 from river atlas", MATCH, True),
    (PAIR, "By the river atlas: 420", MATCH, True),
    (PAIR, "420 from field diary", NO, True),
    (PAIR, '{"answer": {"source": "420", "value": "river atlas"}}', UNCLEAR, False),
    (PAIR, "420", NO, True),
    (PAIR, "420, by the river atlas and the field diary", UNCLEAR, True),
    # other scripts
    (ACCENTED, "ŁUCJA", MATCH, True),
    (ACCENTED, "Lucja", NO, True),
    (ACCENTED, "Zso\u0301fia, not Łucja", UNCLEAR, True),
    (HINDI, "राम", MATCH, True),
    (HINDI, "रिम", NO, True),
    (HINDI, "रामा", NO, True),
]


def test_a_reply_is_read_by_every_rule() -> None:
    for asked, reply, verdict, breach in REPLIES:
        reading = judge(asked, reply, mode=Mode.JSON)
        assert (reading.verdict, reading.breach) == (verdict, breach), reply


@pytest.mark.parametrize(
    ("reply", "reason"),
    [
        ("Adaeze", "says the right option alone"),
        ("Not I. Answer: Adaeze", "names an option or negates before the answer"),
        ("surely Adaeze", "says more than the right option once"),
        ("Adaeze or Borys", "names the right option and others"),
        ("Borys", "names another option"),
        ("nobody", "names no option"),
    ],
)
def test_a_verdict_has_its_reason(reply: str, reason: str) -> None:
    assert judge(NAME, reply, mode=Mode.JSON).reason == reason


@pytest.mark.parametrize(
    ("reply", "breach"),
    [
        ("Adaeze", False),
        ("I would say that it has to be Adaeze this time, certainly", False),
        ("I would say that it really has to be Adaeze this time, quite certainly", True),
        ("Adaeze\nBorys", True),
    ],
)
def test_in_text_mode_the_contract_is_one_line_of_twelve_words(reply: str, *, breach: bool) -> None:
    assert judge(NAME, reply, mode=Mode.TEXT).breach is breach


@pytest.mark.parametrize(
    ("stated", "thousandths"),
    [
        ("0.9", 900),
        ("1", 1000),
        ("0", 0),
        ("0.0005", 1),
        ("1.1", None),
        ("-1", None),
        ("true", None),
        ('"1"', None),
    ],
)
def test_a_confidence_is_read_in_thousandths(stated: str, thousandths: int | None) -> None:
    reply = f'{{"answer": "Adaeze", "confidence": {stated}}}'
    assert judge(NAME, reply, mode=Mode.JSON).confidence == thousandths


@pytest.mark.parametrize(
    "piece",
    [
        "\n ",
        "](",
        "'111",
        "_111",
        "<a ",
        "```\n",
        "1,",
        "!",
        "n't",
        "1\u202f111",
        "not adaeze ",
        "answer: ",
    ],
)
@pytest.mark.parametrize("start", ["", "```", '{"answer": "'])
def test_no_reply_takes_long_to_read(start: str, piece: str) -> None:
    # Patterns that try every beginning with every end would need hours for the first ones.
    reply = (start + piece * 20_000)[:19_999] + "x"
    assert judge(NAME, reply, mode=Mode.JSON).verdict is not MATCH


def test_the_normal_form_of_a_long_reply_is_made_in_linear_time() -> None:
    assert len(words("a," * 10_000).split()) == 10_000
    assert len(words("<" * 20_000).split()) == 20_000
    assert judge(NAME, "```json\n" + "{" * 19_000, mode=Mode.JSON).verdict is NO
