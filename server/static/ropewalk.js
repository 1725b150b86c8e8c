// Keeps pages fresh and the keyboard useful. Nothing here is needed to read a page or to send a form.
//
// One tab of a browser listens to what happens and tells the others, since a browser opens only a few connections.
"use strict";
(() => {
  const LOCK = "ropewalk-stream";
  const channel = new BroadcastChannel(LOCK);
  const KIND = { behind: "behind", event: "event", live: "live", on: "on", off: "off", out: "out", here: "here" };
  const SAID = {
    [KIND.on]: "",
    [KIND.off]: "Ropewalk does not answer; this page may be old",
    [KIND.out]: "This login has ended and this page may be old; open the link that `ropewalk up` shows",
  };
  let last = Number(document.getElementById("page")?.dataset.position ?? 0);

  // --- What happens -------------------------------------------------------------------------------------------------
  let opened = () => {};
  function lead(release) {
    let source;
    const tell = (message) => { channel.postMessage(message); hear(message); };
    const open = () => {
      source = new EventSource(`/api/events?cursor=${last}`);
      source.onopen = () => tell({ kind: KIND.on });
      source.onmessage = (message) => tell(told(JSON.parse(message.data)));
      source.addEventListener("live", (message) => tell({ kind: KIND.live, event: JSON.parse(message.data) }));
      source.addEventListener("reload", () => { source.close(); tell({ kind: KIND.behind }); open(); });
      source.onerror = () => {
        tell({ kind: KIND.off });
        if (source.readyState === EventSource.CLOSED) planned = setTimeout(probe, 3000);
      };
    };
    // A stream that was refused does not say why. Who asks often without a login is not listened to for a while, so that
    // one which has ended is looked at seldom, and when another tab opens.
    let planned = 0;
    const probe = async () => {
      clearTimeout(planned);
      const answer = await fetch("/api/profile").catch(() => null);
      if (answer?.ok) return open();
      const isOut = answer?.status === 401;
      tell({ kind: isOut ? KIND.out : KIND.off });
      planned = setTimeout(probe, isOut ? 60_000 : 3000);
    };
    opened = () => { if (standing === KIND.out) probe(); };
    open();
    addEventListener("pagehide", () => { source.close(); release(); }, { once: true });
  }

  const told = (event) => ({ kind: KIND.event, sequence: event.sequence, type: event.type, subject: event.subject });

  function hear(message) {
    if (message.kind === KIND.event) {
      // What came already is not told again.
      if (message.sequence <= last) return;
      last = message.sequence;
      document.dispatchEvent(new CustomEvent("ropewalk:event", { detail: message }));
      stopWords(message);
      refreshSoon();
    } else if (message.kind === KIND.live) {
      showWords(message.event);
    } else if (message.kind === KIND.behind) {
      refreshSoon();
    } else if (message.kind === KIND.here) {
      opened();
    } else {
      status(message.kind);
    }
  }

  let standing = KIND.on;
  function status(kind) {
    const place = document.getElementById("live");
    if (place) place.textContent = SAID[kind];
    if (standing !== KIND.on && kind === KIND.on) refreshSoon();
    standing = kind;
  }

  // What the other tab told after this page was made and before it listened is asked for; what it tells meanwhile waits.
  let waiting = [];
  async function catchUp() {
    const answer = await fetch(`/api/events?cursor=${last}&limit=500`).catch(() => null);
    const page = answer?.ok ? await answer.json() : { items: [] };
    for (const event of page.items) hear(told(event));
    const heard = waiting;
    waiting = null;
    heard.forEach(hear);
  }

  // --- Fresh pages --------------------------------------------------------------------------------------------------
  let planned = 0, isStale = false;
  function refreshSoon() {
    // What somebody writes on a line stays where it is.
    if (document.hidden || document.querySelector(".said")) { isStale = true; return; }
    if (!planned && document.getElementById("palette")) planned = setTimeout(refresh, 300);
  }

  async function refresh() {
    planned = 0;
    isStale = false;
    const opened = [...document.querySelectorAll("details[open][id]")].map((one) => one.id);
    await htmx.ajax("GET", location.pathname + location.search, { target: "#page", select: "#page", swap: "outerMorph" });
    for (const id of opened) document.getElementById(id)?.setAttribute("open", "");
    dress();
  }

  // --- Words as they come -------------------------------------------------------------------------------------------
  function showWords(event) {
    const place = document.getElementById("words");
    if (!place || event.subject !== place.dataset.subject) return;
    if (event.type === "ideation.delta") {
      place.hidden = false;
      // The words of a try that failed or died are no part of the reply.
      if (place.dataset.try !== event.data.try) place.textContent = "";
      place.dataset.try = event.data.try;
      place.textContent += event.data.text;
    }
  }

  function stopWords(event) {
    const place = document.getElementById("words");
    if (place && event.subject === place.dataset.subject) {
      place.textContent = "";
      place.hidden = true;
    }
  }

  // --- Times, and where we are ----------------------------------------------------------------------------------------
  const near = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
  function dress() {
    for (const time of document.querySelectorAll("time")) {
      const at = new Date(time.dateTime);
      if (!Number.isNaN(at.valueOf())) { time.textContent = near.format(at); time.title = time.dateTime; }
    }
    for (const link of document.querySelectorAll(".top nav a")) {
      const path = new URL(link.href).pathname;
      const isHere = path === "/" ? location.pathname === "/" : location.pathname.startsWith(path);
      if (isHere) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
    }
  }

  // --- Keys -----------------------------------------------------------------------------------------------------------
  const isTyping = (target) => target.closest?.("input, textarea, select, [contenteditable]");
  let chosen = -1;
  function choose(step) {
    const entries = [...document.querySelectorAll("[data-entry]")];
    if (!entries.length) return;
    entries[chosen]?.classList.remove("chosen");
    chosen = Math.min(Math.max(chosen + step, 0), entries.length - 1);
    const entry = entries[chosen];
    entry.classList.add("chosen");
    entry.scrollIntoView({ block: "nearest" });
    entry.querySelector("a, button, textarea")?.focus({ preventScroll: true });
  }

  function links() {
    const seen = new Map();
    for (const link of document.querySelectorAll("a[href^='/']")) {
      const text = link.textContent.trim().replace(/\s+/g, " ");
      if (text && !seen.has(link.getAttribute("href"))) seen.set(link.getAttribute("href"), text);
    }
    return seen;
  }

  let everywhere = new Map();
  async function openPalette() {
    const palette = document.getElementById("palette");
    if (!palette || palette.open) return;
    everywhere = links();
    palette.showModal();
    const wanted = document.getElementById("wanted");
    wanted.value = "";
    list("");
    wanted.focus();
    // The board knows every idea.
    const answer = await fetch("/", { headers: { Accept: "text/html" } });
    const board = new DOMParser().parseFromString(await answer.text(), "text/html");
    for (const link of board.querySelectorAll("main a[href^='/']")) {
      const href = link.getAttribute("href");
      if (!everywhere.has(href)) everywhere.set(href, link.textContent.trim());
    }
    list(wanted.value);
  }

  function list(wanted) {
    const words = wanted.toLowerCase().split(/\s+/);
    const found = document.getElementById("found");
    found.replaceChildren();
    for (const [href, text] of everywhere) {
      const whole = `${text} ${href}`.toLowerCase();
      if (!words.every((word) => whole.includes(word))) continue;
      const link = document.createElement("a");
      link.href = href;
      link.textContent = text;
      const item = document.createElement("li");
      item.append(link);
      found.append(item);
      if (found.children.length === 12) break;
    }
  }

  document.addEventListener("keydown", (key) => {
    if ((key.ctrlKey || key.metaKey) && key.key.toLowerCase() === "k") {
      key.preventDefault();
      openPalette();
      return;
    }
    if (key.target.id === "wanted" && key.key === "Enter") {
      key.preventDefault();
      document.querySelector("#found a")?.click();
      return;
    }
    if (key.ctrlKey || key.metaKey || key.altKey || isTyping(key.target) || document.querySelector("dialog[open]")) return;
    if (key.key === "?") { document.getElementById("keys")?.showModal(); return; }
    if (key.key === "j") { choose(1); return; }
    if (key.key === "k") { choose(-1); return; }
    const link = document.querySelector(`[data-key="${CSS.escape(key.key)}"]`);
    if (link) { key.preventDefault(); link.click(); }
  });
  document.addEventListener("input", (input) => { if (input.target.id === "wanted") list(input.target.value); });

  // A form that was sent is not sent again by a second click.
  document.addEventListener("submit", (submit) => {
    if (submit.target.method !== "post") return;
    setTimeout(() => { for (const button of submit.target.querySelectorAll("button")) button.disabled = true; });
  });
  addEventListener("pageshow", (shown) => { if (shown.persisted) location.reload(); });

  dress();
  channel.onmessage = (message) => { if (waiting) waiting.push(message.data); else hear(message.data); };
  channel.postMessage({ kind: KIND.here });
  catchUp();
  document.addEventListener("visibilitychange", () => { if (!document.hidden && isStale) refreshSoon(); });
  navigator.locks.request(LOCK, () => new Promise((release) => lead(release)));
})();
