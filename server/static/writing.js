// Keeps what somebody does on a page while it is made fresh: what they write, open and send. What they began to write is
// never taken away, and never moved to something else than they read: the page waits, and says so.
"use strict";
(() => {
  const HELD = "What stands here has changed. This page waits, since what you write would be lost";
  const tell = (words) => document.dispatchEvent(new CustomEvent("ropewalk:held", { detail: words }));
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

  document.addEventListener("htmx:before:swap", (swap) => {
    const written = [...document.querySelectorAll(WRITTEN)].filter(isWritten);
    const answer = written.length && new DOMParser().parseFromString(swap.detail.ctx.text, "text/html");
    // What stands on a line is in no page that the server sends.
    const isHeld = document.querySelector(".said") || !written.every((field) => wouldStay(field, answer));
    if (isHeld) swap.preventDefault();
    tell(isHeld ? HELD : "");
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
