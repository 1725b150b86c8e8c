// Shows what models say and do as it comes: on the page of a task all of it, on that of a build a line for each task. The
// server shows the same a little later, in its own list, and what has come there goes from here.
"use strict";
(() => {
  // So many steps, and so much of one text, stand here at most.
  const STEPS = 100;
  const LETTERS = 16_000;
  const CLASSES = { "+": "added", "-": "removed", "@": "place" };

  // All that models write gets into the page as text.
  function make(name, className, text) {
    const made = document.createElement(name);
    made.className = className;
    made.textContent = text.slice(-LETTERS);
    return made;
  }

  const here = () => document.getElementById("now");
  const standing = (key) => [...document.querySelectorAll(`[data-step="${CSS.escape(key)}"]`)];

  /** Finds the entry of a step where the server shows it, or here. */
  function entry(step) {
    const key = `${step.attempt}/${step.item}`;
    const [known] = standing(key);
    if (known) return known;
    const one = make("li", "", "");
    one.dataset.step = key;
    here().append(one);
    while (here().children.length > STEPS) here().firstElementChild.remove();
    return one;
  }

  function write(one, name, className, text) {
    let place = one.querySelector(`.${className}`);
    if (!place) one.append(place = make(name, className, ""));
    place.hidden = false;
    place.textContent = (place.textContent + text).slice(-LETTERS);
    return place;
  }

  function difference(one, step) {
    const lines = step.difference.slice(0, LETTERS).split("\n").map((line) => make("span", CLASSES[line[0]] ?? "same", line));
    const place = make("pre", "difference", "");
    place.tabIndex = 0;
    place.append(...lines.flatMap((line) => [line, "\n"]));
    one.append(make("p", "faint", step.line), place);
  }

  // What has no entry of its own comes with the next page.
  const SHOWS = {
    message_updated: (step) => write(entry(step), "p", "spoken", step.text),
    message_ended: (step) => {
      if (!step.text.trim()) return;
      const one = entry(step);
      one.querySelector(".spoken")?.replaceChildren();
      write(one, "p", "spoken", step.text.trim());
    },
    tool_started: (step) => {
      const one = entry(step);
      if (!one.querySelector(".told")) one.prepend(make("span", "told", step.line), " ", make("span", "state busy", "runs"));
    },
    tool_updated: (step) => write(entry(step), "pre", "coming", step.text),
    file_changed: (step) => difference(entry(step), step),
    tool_ended: (step) => {
      const one = entry(step);
      one.querySelector(".state")?.replaceWith(step.is_error ? make("span", "state bad", "failed") : "");
      one.querySelector(".coming")?.replaceChildren();
      write(one, "pre", "coming", step.output);
    },
  };

  function show(step) {
    const shows = SHOWS[step.kind];
    if (!shows) return;
    // The server has shown it to its end.
    if (standing(`${step.attempt}/${step.item}`).some((one) => "ended" in one.dataset)) return;
    shows(step);
  }

  /** Says in the row of a task what it is at. */
  function tell(place, step) {
    if (step.kind === "message_updated") {
      const said = place.dataset.item === step.item ? place.textContent : "says: ";
      place.dataset.item = step.item;
      place.textContent = said.length < 160 ? (said + step.text.replace(/\s+/g, " ")).slice(0, 160) : said;
    } else if (step.line && step.kind !== "message_ended") {
      place.textContent = step.line;
    }
  }

  document.addEventListener("ropewalk:live", ({ detail: event }) => {
    if (event.type !== "task.step") return;
    if (here()?.dataset.subject === event.subject) show(event.data);
    const row = document.querySelector(`[data-now="${CSS.escape(event.subject)}"]`);
    if (row) tell(row, event.data);
  });

  document.addEventListener("ropewalk:fresh", () => {
    const newest = document.getElementById("steps")?.dataset.attempt;
    for (const one of [...here()?.children ?? []]) {
      const other = standing(one.dataset.step).find((known) => known !== one);
      const coming = other?.querySelector(".coming");
      if (coming && one.querySelector(".coming")) {
        coming.textContent = one.querySelector(".coming").textContent;
        coming.hidden = false;
      }
      // Ids grow with time: an earlier attempt has ended.
      if (other || (newest && one.dataset.step < newest)) one.remove();
    }
  });
})();
