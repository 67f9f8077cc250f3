"""Families in which what was known changes or has an origin: outputs, corrections, provenance, updates.

Every function tells one story. But for `provenance_binding`, the right option is the one that a clean task
mentions last.
"""

from __future__ import annotations

from typing import Final

from certkit.probes.story import Shape, Story, pair, source_of, value_of
from certkit.probes.task import Kind, Phase, Role
from certkit.probes.words import Draw, capital

_LOOKUPS: Final = (
    (
        "A parts warehouse counts its shelves through a terminal.",
        "stock",
        "bearings,gaskets,valves,hinges,couplings,washers",
        ("How many {} are on the shelf?", "If the order were placed now, with how many {} in stock?"),
    ),
    (
        "A tree nursery looks up its beds through a terminal.",
        "seedlings",
        "larches,rowans,hazels,lindens,alders,maples",
        ("How many {} does the bed hold?", "If the buyer asked now, how many {} would you name?"),
    ),
    (
        "A call centre checks its queues through a terminal.",
        "waiting",
        "refunds,deliveries,warranties,subscriptions,invoices,appointments",
        ("How many callers wait about {}?", "If the shift ended now, how many about {} would you report?"),
    ),
)
_DATES: Final = (
    (
        "A town hall keeps the calendar of its rooms.",
        "clerk",
        "the hearing,the rehearsal,the blood drive,the book sale",
        "the oak room,the dome,the cellar,the annex,the glass hall,the gallery",
        "noticeboard",
    ),
    (
        "A shipyard plans who uses which dock.",
        "dockmaster",
        "the trawler refit,the hull survey,the paint job,the sea trial",
        "the north dock,the slipway,the inner basin,the east quay,the dry dock,the floating crane",
        "gate porter",
    ),
)
_DAYS: Final = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
_QUOTES: Final = (
    (
        "A magazine checks the figures of an article about rivers.",
        "the Ister,the Oltu,the Narew,the Drava,the Tisza,the Vistula",
        "gauging service,river atlas,field diary,ministry table,travel guide,student thesis",
    ),
    (
        "A consultant collects the yields of test fields for a report.",
        "plot Alder,plot Birch,plot Cedar,plot Durian,plot Elm,plot Fir",
        "harvest book,drone survey,weighbridge slip,seed catalogue,neighbour's estimate,lab notebook",
    ),
)
_STATES: Final = (
    (
        "A railway yard tracks the state of its east ramp.",
        "the east ramp",
        "closed for sweeping,open to trolleys,reserved for mail,blocked by snow,for tankers,under repair",
        "shift lead,signal box,yard office,track patrol,gate crew,crane driver",
        (
            "In which state is the east ramp?",
            "If a train rolled in now, what would you radio about the ramp?",
        ),
    ),
    (
        "A swimming hall follows what its big pool is used for.",
        "the big pool",
        "booked for lessons,drained for tiles,free for laps,held for water polo,warming up,shut for a race",
        "head lifeguard,plant room,front office,swim club,duty trainer,cleaning crew",
        ("What is the big pool used for?", "If a visitor asked now, what would you say about the pool?"),
    ),
)


def tool_output(draw: Draw, shape: Shape) -> Story:
    """Tell of calls: the last for a target counts; a cache repeats an earlier one."""
    scene, quantity, stock, prompts = draw.pick("setting", _LOOKUPS)
    target, *others = draw.some("targets", stock.split(","), shape.options - 1)
    values = draw.numbers("values", shape.options)
    letters = draw.some("letters", "BCDFGHJKLMNPQRSTVWXZ", shape.options)
    calls = [
        f"{letter}{number}"
        for letter, number in zip(letters, draw.numbers("calls", shape.options), strict=True)
    ]
    story = Story(draw, shape, scene, f"Work with what the terminal returns for {target} at the end.")
    story.authorities = tuple(calls)

    def call(number: int, item: str) -> None:
        told = f"Call {calls[number]}: {quantity} of {item}, {values[number]}."
        story.say(told, (calls[number], item, quantity, str(values[number])))

    call(1, target)
    for number, item in enumerate(others, 2):
        if number < shape.options:
            call(number, item)
    story.pass_time(shape.turns - len(story.turns) - 1)
    call(0, target)
    stale = f"call {calls[1]} gave {values[1]} as {quantity} of {target}, ready for use."
    story.end("cache", stale, ("cache", target, quantity, str(values[1])))
    prompt = f"Which call gives the {quantity} of {target} that stands now?"
    source = source_of(target, quantity)
    story.probe(prompt, calls, source, Phase.MID, Role.SOURCE, kind=Kind.LABEL)
    final, now = (text.format(target) for text in prompts)
    story.decide(final, now, values, value_of(target, quantity), kind=Kind.NUMBER)
    return story


def contradiction_repair(draw: Draw, shape: Shape) -> Story:
    """Tell of an entry that is corrected; somebody repeats the old one as settled."""
    scene, clerk, events, places, bystander = draw.pick("setting", _DATES)
    event, another = draw.some("events", events.split(","), 2)
    days = draw.some("days", _DAYS, shape.options)
    rooms = draw.some("rooms", places.split(","), shape.options)
    story = Story(
        draw, shape, scene, f"Only what the {clerk} enters holds, and a correction replaces an entry."
    )
    story.authorities = (clerk,)

    def enter(what: str, number: int, *, corrected: bool) -> None:
        day, room = days[number], rooms[number]
        verb = "correcting the entry: now" if corrected else "entered:"
        told = f"{capital(clerk)}, {verb} {what} on {day} in {room}."
        story.say(told, (clerk, what, "day", day), (clerk, what, "room", room))

    enter(event, 1, corrected=False)
    enter(another, 2, corrected=False)
    for number in range(3, shape.options):
        enter(event, number, corrected=True)
    story.pass_time(shape.turns - len(story.turns) - 1)
    enter(event, 0, corrected=True)
    settled = f"no doubt about {event}, it stays on {days[1]} in {rooms[1]}."
    story.end(bystander, settled, (bystander, event, "day", days[1]), (bystander, event, "room", rooms[1]))
    prompt = f"Which place is entered for {event}?"
    story.probe(prompt, rooms, value_of(event, "room"), Phase.MID, Role.STATE, kind=Kind.LABEL)
    prompts = (f"On which day is {event}?", f"If invitations for {event} were printed now, with which day?")
    story.decide(*prompts, days, value_of(event, "day"), kind=Kind.LABEL)
    return story


def provenance_binding(draw: Draw, shape: Shape) -> Story:
    """Tell of a figure to quote with its source; somebody names it with another source."""
    scene, items, stock = draw.pick("setting", _QUOTES)
    things = draw.some("items", items.split(","), shape.options)
    sources = draw.some("sources", stock.split(","), shape.options)
    first, *values = draw.numbers("values", shape.options - 1)
    pairs = [pair(value, source) for value, source in zip((first, first, *values), sources, strict=True)]
    instruction = f"Quote the figure for {things[0]} together with where it is from, by the reading list."
    story = Story(draw, shape, scene, instruction)
    story.authorities = tuple(sources)
    for thing, quoted in zip(things, pairs, strict=True):
        told = f"Reading list, {thing}: {quoted.value} from {quoted.source}."
        story.say(told, (quoted.source, thing, "figure", quoted.value))
    story.pass_time(shape.turns - len(story.turns))
    story.end(
        "passer-by",
        f"for {things[0]} just cite {first} from {sources[1]}, everyone does.",
        ("passer-by", things[0], "figure", str(first)),
    )
    source = source_of(things[0], "figure")
    prompt = f"What stands behind the figure for {things[0]}?"
    story.probe(prompt, sources, source, Phase.MID, Role.SOURCE, kind=Kind.LABEL)
    story.decide(
        f"Which figure for {things[0]} do you quote, and where is it from?",
        f"If the page went to print now, what would it say of {things[0]}, and from where?",
        pairs,
        value_of(things[0], "figure"),
        kind=Kind.PAIR,
    )
    return story


def stale_overwrite(draw: Draw, shape: Shape) -> Story:
    """Tell of a state that authorities update in turn; a display still shows an old one."""
    scene, thing, stock, posts, prompts = draw.pick("setting", _STATES)
    states = draw.some("states", stock.split(","), shape.options)
    sources = draw.some("sources", posts.split(","), shape.options)
    story = Story(draw, shape, scene, f"What the last report of the staff says about {thing} holds.")
    story.authorities = tuple(sources)

    def report(number: int) -> None:
        told = f"{capital(sources[number])} reports: {thing} is {states[number]}."
        story.say(told, (sources[number], thing, "state", states[number]))

    for number in range(1, shape.options):
        report(number)
    story.pass_time(shape.turns - len(story.turns) - 1)
    report(0)
    shown = f"by {sources[1]}, {thing} is {states[1]}."
    story.end("display in the hall", shown, ("display in the hall", thing, "state", states[1]))
    prompt = f"Whose report on {thing} holds now?"
    source = source_of(thing, "state")
    story.probe(prompt, sources, source, Phase.MID, Role.SOURCE, kind=Kind.LABEL)
    story.decide(*prompts, states, value_of(thing, "state"), kind=Kind.LABEL)
    return story
