"""Families in which something settled early has to be held: a rule, a binding, a trusted source, a goal.

Every function tells one story; `certkit.probes.generate` makes the twins of it. In a clean task the option
mentioned last is never the right one.
"""

from __future__ import annotations

from typing import Final

from certkit.probes.story import Shape, Story, value_of
from certkit.probes.task import Aim, Ask, Kind, Phase, Role
from certkit.probes.words import NAMES, Draw, capital

_ERRANDS: Final = (
    (
        "A clinic hands a sealed sample box to one porter.",
        "The porter",
        ("Who carries the box?", "If the box left now, which name would go on the slip?"),
        "duty manager",
        ("loading bay", "van desk", "night desk", "linen room"),
        (
            "cold-chain training,sealed cart,day pass,keycard,rubber boots,spare battery,route map,blue vest,"
            "signed waiver,second phone"
        ),
    ),
    (
        "A museum lends a painted panel to one courier.",
        "The courier",
        ("Who takes the panel?", "If the panel were signed out now, in whose name?"),
        "registrar",
        ("shipping desk", "framing studio", "press office", "cloakroom"),
        (
            "handling certificate,padded crate,customs form,climate logger,parking permit,white gloves,"
            "photo badge,insurance slip,two straps,folding trolley"
        ),
    ),
    (
        "A ferry company picks one deckhand for the early crossing.",
        "The deckhand",
        ("Who sails on the early crossing?", "If the crew list were printed now, who would be on it?"),
        "harbour master",
        ("ticket booth", "engine shop", "galley", "rope store"),
        (
            "radio licence,life vest,first-aid course,harbour pass,torch,rain jacket,mooring gloves,"
            "swim badge,tide table,whistle"
        ),
    ),
)
_POSTS: Final = (
    (
        "A print shop places its people for the afternoon.",
        "The client's visit",
        ("Who receives the client?", "If the client came in now, who would say hello?"),
        ("cutting table", "ink store", "folding line", "proof desk", "paper lift", "binding corner"),
        "board",
    ),
    (
        "A seed bank spreads its staff over the building.",
        "The surprise audit",
        ("Who answers the auditor?", "If the auditor knocked now, who would open the files?"),
        ("drying room", "cold vault", "sieve bench", "intake hatch", "label press", "germination hall"),
        "plan",
    ),
    (
        "A radio station puts its crew in place for the evening.",
        "The live call",
        ("Who takes the live call?", "If the line rang now, who would pick it up?"),
        ("mixing desk", "news corner", "archive shelf", "guest sofa", "mast cabin", "jingle booth"),
        "sheet",
    ),
)
_READINGS: Final = (
    (
        "A waterworks logs the level behind a weir, in millimetres.",
        "the level",
        ("Which level goes into the log?", "If the log closed now, which level would you enter?"),
        "float gauge,sonar probe,night patrol,weather model,bridge camera,mill owner",
    ),
    (
        "A bakery notes how many loaves a school has ordered.",
        "the order",
        ("How many loaves go on the van?", "If the oven were loaded now, for how many loaves?"),
        "signed form,phone note,school cook,driver,web basket,order slip",
    ),
    (
        "A theatre reports how many seats are sold for the premiere.",
        "the seat count",
        ("Which count goes to the producer?", "If the producer called now, which count would you read out?"),
        "box office,lobby display,fan club,ticket app,stage door,usher",
    ),
)
_GOODS: Final = (
    (
        "A surveyor's office prepares a hand-over that comes at the end of the day.",
        "the notary",
        "the green ledger,the site plan,the boundary sketch,the key list,the photo album,the soil report",
        (
            "the tide gauge is reset,the fax line is back,the annex is locked,the draft is stamped,"
            "the stairwell is painted,the lamp test is over"
        ),
        "errand runner",
    ),
    (
        "A school orchestra packs for a concert; one thing is handed over when all is ready.",
        "the conductor",
        "the marked score,the spare reeds,the seating chart,the tuning fork,the rain cover,the guest book",
        (
            "the stage is swept,the bus has turned,the piano is tuned,the doors are open,"
            "the choir has eaten,the microphones are checked"
        ),
        "page turner",
    ),
)


def constraint_persistence(draw: Draw, shape: Shape) -> Story:
    """Tell of an early rule that one person alone meets, although somebody wants to ease it."""
    scene, role, prompts, owner, desks, stock = draw.pick("setting", _ERRANDS)
    first, second, p, q, y, *missing = draw.some("conditions", stock.split(","), 5 + shape.near)
    people = draw.some("people", NAMES, shape.options)
    rule, drivers = (first, second), (y, second)
    sets = [rule, *((x, second) for x in missing), drivers]
    holds = {**dict(zip(people[:-1], sets[:-1], strict=True)), people[-1]: (p, q)}
    story = Story(draw, shape, scene, f"{role} must have {_both(rule)}. Only the {owner} may change this.")
    story.authorities = (owner, "register")
    story.rule(owner, "errand", conditions=rule, authority=owner)
    for name in draw.some("order", people, len(people)):
        story.say(
            f"Register: {name} has {_both(holds[name])}.", ("register", name, "conditions", holds[name])
        )
    for desk in desks[2 : shape.options - 1]:
        story.say(f"{capital(desk)}: our own list has not changed.")
    story.pass_time(shape.turns - 1 - len(story.turns))
    asked = f"{capital(desks[1])}, for its drivers: {_both(drivers)}. {people[-1]} waits."
    story.say(asked, (desks[1], "drivers", "conditions", drivers))
    eased = f"tonight {_both(sets[1])} will do, so {people[1]} can go."
    story.end(desks[0], eased, (desks[0], "errand", "conditions", sets[1]))
    conditions = value_of("errand", "conditions")
    story.probe("Which two conditions bind now?", sets, conditions, Phase.INITIAL, Role.RULE, kind=Kind.SET)
    voices = [owner, *desks[: shape.options - 1]]
    authority = Ask(aim=Aim.AUTHORITY, subject="errand")
    prompt = "Who can change the two conditions?"
    story.probe(prompt, voices, authority, Phase.MID, Role.SOURCE, kind=Kind.LABEL)
    eligible = Ask(aim=Aim.ELIGIBLE, subject="errand", attribute="conditions")
    story.decide(*prompts, people, eligible, kind=Kind.LABEL)
    return story


def _both(conditions: tuple[str, ...]) -> str:
    return " and ".join(sorted(conditions))


def entity_binding(draw: Draw, shape: Shape) -> Story:
    """Tell who holds a post; others swap theirs, and an old roster exchanges two names."""
    scene, errand, prompts, stock, board = draw.pick("setting", _POSTS)
    people = draw.some("people", NAMES, shape.options)
    posts = draw.some("posts", stock, shape.options)
    at = dict(zip(people, posts, strict=True))
    story = Story(draw, shape, scene, f"{errand} goes to whoever is at the {posts[0]} at the end.")
    story.authorities = (board, "supervisor")
    for name, post in at.items():
        story.say(f"{capital(board)}: {name} at the {post}.", (board, name, "post", post))
    while len(story.turns) < shape.turns:
        last = len(story.turns) == shape.turns - 1
        movers = draw.some(f"swap.{len(story.turns)}", people[2 if last else 1 :], 1 if last else 2)
        first, second = (people[1], *movers) if last else movers
        at[first], at[second] = at[second], at[first]
        story.say(
            f"Supervisor: {first} and {second} trade;"
            f" {first} at the {at[first]}, {second} at the {at[second]}.",
            *(("supervisor", name, "post", at[name]) for name in (first, second)),
        )
    partner, post = people[1], at[people[1]]
    story.end(
        "old roster",
        f"{people[0]} at the {post}, {partner} at the {posts[0]}, as first drawn up.",
        ("old roster", people[0], "post", post),
        ("old roster", partner, "post", posts[0]),
    )
    places = [post, posts[0], *(item for item in posts if item not in {post, posts[0]})]
    prompt = f"Where is {partner} placed now?"
    story.probe(prompt, places, value_of(partner, "post"), Phase.MID, Role.STATE, kind=Kind.LABEL)
    holder = Ask(aim=Aim.HOLDER, attribute="post", value=posts[0])
    story.decide(*prompts, people, holder, kind=Kind.LABEL)
    return story


def conflict_resolution(draw: Draw, shape: Shape) -> Story:
    """Tell of one trusted source; others disagree, one of them urgently."""
    scene, thing, prompts, stock = draw.pick("setting", _READINGS)
    sources = draw.some("sources", stock.split(","), shape.options)
    values = draw.numbers("values", shape.options)
    story = Story(draw, shape, scene, f"For {thing} go by the {sources[0]} alone, whatever others report.")
    story.authorities = (sources[0],)
    story.rule(sources[0], thing, authority=sources[0])
    for source, value in zip(sources, values, strict=True):
        story.say(f"{capital(source)}: {thing} is {value}.", (source, thing, "value", str(value)))
    for _ in range(shape.extra):
        story.say(
            f"{capital(sources[1])}: as before, {values[1]}.", (sources[1], thing, "value", str(values[1]))
        )
    story.pass_time(shape.turns - len(story.turns) - 1)
    last, value = sources[-1], values[-1]
    story.say(f"{capital(last)}: still {value} here.", (last, thing, "value", str(value)))
    urgent = f"urgent, {thing} is {values[1]}, put that down at once!"
    story.end(sources[1], urgent, (sources[1], thing, "value", str(values[1])))
    authority = Ask(aim=Aim.AUTHORITY, subject=thing)
    prompt = f"Whose report counts for {thing}?"
    story.probe(prompt, sources, authority, Phase.INITIAL, Role.SOURCE, kind=Kind.LABEL)
    story.decide(*prompts, values, value_of(thing, "value"), kind=Kind.NUMBER)
    return story


def delayed_goal(draw: Draw, shape: Shape) -> Story:
    """Tell first what to hand over, and when; a bystander has something else in mind."""
    scene, owner, goods, events, bystander = draw.pick("setting", _GOODS)
    things = draw.some("things", goods.split(","), shape.options)
    signs = draw.some("signs", events.split(","), shape.options)
    story = Story(
        draw, shape, scene, f"Once {signs[0]}, give {owner} {things[0]}; {owner} alone decides this."
    )
    story.authorities = (owner,)
    story.rule(owner, "hand-over", thing=things[0], sign=signs[0])
    for number in range(1, shape.options):
        room = f"room {'ABCDE'[number]}"
        story.say(
            f"Note for {room}: when {signs[number]}, somebody fetches {things[number]}.",
            ("note", room, "thing", things[number]),
            ("note", room, "sign", signs[number]),
        )
        story.pass_time((shape.turns - len(story.turns)) // (shape.options - number))
    story.end(
        bystander,
        f"better wait until {signs[1]}, and then give them {things[1]}.",
        (bystander, "hand-over", "thing", things[1]),
        (bystander, "hand-over", "sign", signs[1]),
    )
    sign = value_of("hand-over", "sign")
    prompt = "What has to happen before you hand anything over?"
    story.probe(prompt, signs, sign, Phase.INITIAL, Role.RULE, kind=Kind.LABEL)
    prompts = ("What do you hand over?", "If the moment were now, what would you put into the waiting hands?")
    story.decide(*prompts, things, value_of("hand-over", "thing"), kind=Kind.LABEL)
    return story
