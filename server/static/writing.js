// Keeps what somebody does on a page while it is made fresh: what they write, open and send. What they began to write is
// never taken away, and what they write or decide is never moved to something else than they read: the page waits, and
// says so.
"use strict";
(() => {
  const HELD = "What stands here has changed. This page waits, since what you write would be lost";
  const NEWER = "There is something newer than what you read here. This page waits, since you decide about what it shows.";
  const tell = (words, canLoad = false) => document.dispatchEvent(new CustomEvent("ropewalk:held", { detail: { words, canLoad } }));
  const WRITTEN = "#page :is(input:not([type=hidden]), textarea, select)";

  function isWritten(field) {
    if (field.type === "checkbox" || field.type === "radio") return field.checked !== field.defaultChecked;
    if (field.type === "file") return field.files.length > 0;
    if (field instanceof HTMLSelectElement) {
      return field.selectedIndex !== Math.max([...field.options].findIndex((one) => one.defaultSelected), 0);
    }
    return field === document.activeElement || field.value !== field.defaultValue;
  }

  /** Finds the field of the answer that stands for `field`. */
  function twin(field, answer) {
    if (field.id) return answer.getElementById(field.id);
    const of = field.form?.getAttribute("action");
    const form = [...answer.forms].find((one) => one.getAttribute("action") === of);
    return form?.elements[field.name];
  }

  /** Tells what a form is about: what it sends along that nobody writes. */
  function about(form) {
    const hidden = [...(form?.querySelectorAll("input[type=hidden]") ?? [])].filter((one) => one.name !== "csrf");
    return [form?.getAttribute("action"), ...hidden.map((one) => `${one.name}=${one.defaultValue}`)].join("&");
  }

  function wouldStay(field, answer) {
    const other = twin(field, answer);
    return other && about(field.form) === about(other.form ?? field.form);
  }

  // What the forms of this page decide about, as they first showed it: a form may be away for a while, and come back about
  // something else. One that is folded away shows nothing yet.
  const shown = new Map();
  const decided = (place) => [...place.querySelectorAll("#page input[data-shown]")];
  const nameOf = (field) => `${field.form.getAttribute("action")} ${field.name}`;
  function note() {
    for (const field of decided(document)) {
      if (field.closest("details:not([open])")) shown.delete(nameOf(field));
      else if (!shown.has(nameOf(field))) shown.set(nameOf(field), field.defaultValue);
    }
  }

  /** Finds out whether a form of the answer decides about something else than it did here. */
  function isNewer(answer) {
    return decided(answer).some((field) => (shown.get(nameOf(field)) ?? field.defaultValue) !== field.defaultValue);
  }

  /** Says why a page may not become what the server answered; nothing where it may. */
  function whyHeld(answer) {
    const written = [...document.querySelectorAll(WRITTEN)].filter(isWritten);
    // What stands on a line is in no page that the server sends.
    if (document.querySelector(".said") || !written.every((field) => wouldStay(field, answer))) return HELD;
    return isNewer(answer) ? NEWER : "";
  }

  document.addEventListener("htmx:before:swap", (swap) => {
    note();
    const why = whyHeld(new DOMParser().parseFromString(swap.detail.ctx.text, "text/html"));
    if (why) swap.preventDefault();
    tell(why, why === NEWER);
  });
  document.addEventListener("htmx:response:error", () => tell("This page is no longer there as it is shown; load it again"));

  // Whoever opened, closed or sent something knows better than the server.
  htmx.registerExtension("writing", {
    htmx_before_morph_attr: (element, { attrName }) => {
      if (attrName === "open" && element instanceof HTMLDetailsElement) return false;
      return !(element.hasAttribute("aria-busy") && ["disabled", "aria-busy"].includes(attrName));
    },
  });
  // Nothing that is pasted is cut off: what is too long stays as it is, is told, and is sent once it is short enough.
  document.addEventListener("input", ({ target: field }) => {
    const most = Number(field.dataset?.most);
    if (!most) return;
    const bytes = new TextEncoder().encode(field.value).length;
    const told = `This has ${bytes.toLocaleString("en")} bytes, and ${most.toLocaleString("en")} are the most`;
    field.setCustomValidity(bytes > most ? told : "");
  });
  document.addEventListener("submit", (submit) => {
    // Whoever sends it by other means looks after its buttons.
    if (submit.target.method !== "post" || submit.defaultPrevented) return;
    // A form that was sent is not sent again by a second click.
    setTimeout(() => {
      for (const button of submit.target.querySelectorAll("button")) {
        button.disabled = true;
        button.setAttribute("aria-busy", "true");
      }
    });
  });
})();
