"use strict";
/*
The list of runs and the run that is open. The data of the page: `tasks` as [name, runs, successes]; `runs` as
[id, task, domain, condition, outcome, violations, steps], where numbers are places in the lists of those names
and null is unmeasured; `opened` has by a run's place its `fields` and `turns` as [role, place in `texts`, full
length where it is cut], and `over`, the turns left out before the turn `before`. All of it is shown as text.
*/
const data = JSON.parse(document.getElementById("data").textContent);
const ID = 0, TASK = 1, DOMAIN = 2, CONDITION = 3, OUTCOME = 4, VIOLATIONS = 5, STEPS = 6;
const STEP = 200; // rows that are drawn at once
const LONG = 1200; // characters from which a turn is folded
const SIGNS = { success: "✓", failure: "✗", safe_halt: "✗", harness_error: "?" };
const FAILED = "failed";
const ORDERS = {
  "Failing tasks first": null,
  "By id": (a, b) => (a[ID] < b[ID] ? -1 : Number(a[ID] > b[ID])),
  "Most violations first": (a, b) => (b[VIOLATIONS] ?? -1) - (a[VIOLATIONS] ?? -1),
  "Most steps first": (a, b) => (b[STEPS] ?? -1) - (a[STEPS] ?? -1),
};
const element = (id) => document.getElementById(id);
const form = element("filters"), list = element("list"), pane = element("run");
const number = (count) => count.toLocaleString("en-US");
const plain = (name) => name.replaceAll("_", " ");
let chosen = []; // the places of the runs that the filters select, in order
let drawn = 0; // how many of them are in the list
let lowered = null; // the texts in lower case, made at the first search

function make(tag, text = "", className = "") {
  const made = document.createElement(tag);
  made.textContent = text;
  if (className) made.className = className;
  return made;
}

function addOptions(id, pairs) {
  for (const [name, value] of pairs) {
    const option = make("option", name);
    option.value = value;
    element(id).append(option);
  }
}

function fillFilters() {
  const places = (names) => names.map((name, place) => [plain(name), place]);
  const sorted = (names) => places(names).sort((a, b) => (a[0] < b[0] ? -1 : 1));
  addOptions("outcome", [["all", ""], ["did not succeed", FAILED], ...places(data.outcomes)]);
  addOptions("domain", [["all", ""], ...sorted(data.domains)]);
  addOptions("condition", [["all", ""], ...sorted(data.conditions)]);
  addOptions("order", Object.keys(ORDERS).map((name) => [name, name]));
  form.hidden = false;
}

function textsWith(word) {
  lowered ??= data.texts.map((text) => text.toLowerCase());
  return new Set([...lowered.keys()].filter((place) => lowered[place].includes(word)));
}

function select() {
  const word = element("word").value.trim().toLowerCase();
  const { outcome, domain, condition, order } = Object.fromEntries(
    ["outcome", "domain", "condition", "order"].map((id) => [id, element(id).value]),
  );
  const texts = word ? textsWith(word) : null;
  const success = data.outcomes.indexOf("success");
  const says = (run, place) =>
    run[ID].toLowerCase().includes(word) || data.tasks[run[TASK]][0].toLowerCase().includes(word) ||
    (data.opened[place]?.turns ?? []).some((turn) => texts.has(turn[1]));
  chosen = [];
  data.runs.forEach((run, place) => {
    if (outcome === FAILED ? run[OUTCOME] === success : outcome !== "" && run[OUTCOME] !== Number(outcome)) return;
    if (domain !== "" && run[DOMAIN] !== Number(domain)) return;
    if (condition !== "" && run[CONDITION] !== Number(condition)) return;
    if (!word || says(run, place)) chosen.push(place);
  });
  if (ORDERS[order]) chosen.sort((a, b) => ORDERS[order](data.runs[a], data.runs[b]) || a - b);
  for (const button of document.querySelectorAll(".grid button")) {
    const pressed = button.dataset.domain === domain && button.dataset.condition === condition;
    button.setAttribute("aria-pressed", String(pressed));
  }
  const all = data.runs.length;
  element("count").textContent = `${number(chosen.length)} of ${number(all)} ${all === 1 ? "run" : "runs"}`;
  list.replaceChildren();
  drawn = 0;
  drawMore();
}

function drawMore() {
  const grouped = !ORDERS[element("order").value];
  let rows = null;
  let task = null;
  for (const place of chosen.slice(drawn, drawn + STEP)) {
    const run = data.runs[place];
    if (!rows || (grouped && run[TASK] !== task)) {
      if (grouped && (drawn === 0 || rows || run[TASK] !== list.task)) list.append(taskHead(run[TASK]));
      list.append((rows = make("ol")));
    }
    task = list.task = run[TASK];
    rows.append(row(run, place, grouped));
  }
  drawn = Math.min(drawn + STEP, chosen.length);
  if (drawn < chosen.length) {
    const more = make("button", `Show ${number(Math.min(STEP, chosen.length - drawn))} more`, "more");
    more.addEventListener("click", () => (more.remove(), drawMore()));
    list.append(more);
  }
  markCurrent();
}

function taskHead(place) {
  const [name, runs, successes] = data.tasks[place];
  const head = make("h3");
  head.append(make("bdi", name), make("span", `${number(successes)} of ${number(runs)} succeeded`, "soft"));
  return head;
}

function row(run, place, grouped) {
  const outcome = data.outcomes[run[OUTCOME]];
  const lead = `${data.tasks[run[TASK]][0]}/`; // what the head above says already
  const id = grouped && run[ID].startsWith(lead) ? run[ID].slice(lead.length) : run[ID];
  const link = make("a");
  link.href = `#run-${place}`;
  const sign = make("span", SIGNS[outcome], `sign ${outcome}`);
  sign.setAttribute("aria-hidden", "true");
  const counts = [[run[STEPS], "step"], [run[VIOLATIONS] || null, "violation"]]
    .filter(([count]) => count !== null)
    .map(([count, noun]) => `${number(count)} ${noun}${count === 1 ? "" : "s"}`);
  const facts = [outcome, data.conditions[run[CONDITION]]].map(plain).concat(counts);
  link.append(sign, make("bdi", id), make("small", facts.join(" · ")));
  const item = make("li");
  item.append(link);
  return item;
}

function markCurrent() {
  for (const link of list.querySelectorAll("a")) {
    if (link.hash === location.hash) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
}

function open(place) {
  const run = data.runs[place];
  const item = data.opened[place];
  const outcome = data.outcomes[run[OUTCOME]];
  const head = make("h3");
  head.append(make("span", SIGNS[outcome], `sign ${outcome}`), make("bdi", run[ID]));
  pane.replaceChildren(steps(place), head, entries([
    ["outcome", plain(outcome)],
    ["condition", plain(data.conditions[run[CONDITION]])],
    ["domain", data.domains[run[DOMAIN]]],
    ["task", data.tasks[run[TASK]][0]],
    ...(run[STEPS] === null ? [] : [["steps", number(run[STEPS])]]),
    ...(run[VIOLATIONS] === null ? [] : [["violations", number(run[VIOLATIONS])]]),
  ]));
  if (item) {
    const record = make("details");
    record.append(make("summary", "Record"), entries(item.fields));
    pane.append(record);
  }
  const traced = item?.fields.some((field) => field[0] === "trace");
  if (item?.turns) item.turns.forEach((turn, i) => pane.append(...gap(item, i), drawTurn(turn, i, item)));
  else if (traced || (data.traces && !item)) pane.append(make("p", "This file does not hold its transcript. On a terminal: certkit runs BUNDLE RUN.", "soft"));
  else if (data.traces) pane.append(make("p", "The bundle encloses no trace of this run.", "soft"));
  pane.scrollTop = 0;
}

function steps(place) {
  const nav = make("nav");
  const link = (text, target, className = "") => {
    const made = make("a", text, className);
    made.href = target;
    nav.append(made);
  };
  const at = chosen.indexOf(place);
  link("Back to the list", "#runs", "close");
  if (at > 0) link("Previous", `#run-${chosen[at - 1]}`);
  if (at >= 0 && at + 1 < chosen.length) link("Next", `#run-${chosen[at + 1]}`);
  return nav;
}

function entries(pairs) {
  const terms = make("dl");
  for (const [name, value] of pairs) {
    const shown = make("dd");
    shown.append(make("bdi", value));
    terms.append(make("dt", plain(name)), shown);
  }
  return terms;
}

function gap(item, i) {
  return item.over && i === item.before ? [make("p", `… ${number(item.over)} turns left out`, "soft")] : [];
}

function drawTurn([role, place, full], i, item) {
  const text = data.texts[place];
  const turn = make("div", "", `turn ${["assistant", "user", "tool", "system"].includes(role) ? role : ""}`);
  const said = make("div", text, "said");
  said.dir = "auto";
  turn.append(make("b", `${number(i + 1 + (item.over && i >= item.before ? item.over : 0))} ${role}`), said);
  if (text.length > LONG || text.split("\n").length > 20) {
    turn.classList.add("long");
    const unfold = make("button", "Show all of it", "unfold");
    unfold.addEventListener("click", () => (turn.classList.remove("long"), unfold.remove()));
    turn.append(unfold);
  }
  if (full) turn.append(make("p", `… cut; the turn has ${number(full)} characters`, "soft"));
  return turn;
}

function follow() {
  const place = /^#run-(\d+)$/.exec(location.hash)?.[1];
  const isRun = place !== undefined && Number(place) < data.runs.length;
  const before = list.querySelector("a[aria-current]");
  document.body.classList.toggle("open", isRun);
  if (isRun) open(Number(place));
  else pane.replaceChildren(make("p", data.runs.length ? "Choose a run to read it here." : "", "soft"));
  markCurrent();
  if (isRun) pane.focus({ preventScroll: true });
  else before?.focus();
}

fillFilters();
select();
follow();
form.addEventListener("input", select);
form.addEventListener("submit", (event) => event.preventDefault());
form.addEventListener("reset", () => setTimeout(select));
addEventListener("hashchange", follow);
addEventListener("keydown", (event) => {
  if (event.key === "Escape" && document.body.classList.contains("open")) location.hash = "#runs";
});
document.querySelector(".grid")?.addEventListener("click", ({ target }) => {
  const cell = target.closest("button");
  if (!cell) return;
  const again = cell.getAttribute("aria-pressed") === "true";
  for (const id of ["domain", "condition"]) element(id).value = again ? "" : cell.dataset[id];
  select();
  if (!again) element("runs").scrollIntoView();
});
