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
  let isLeading = false;
  function lead(release) {
    isLeading = true;
    countQuestions();
    let source;
    const tell = (message) => { channel.postMessage(message); hear(message); };
    const open = () => {
      let before = last;
      source = new EventSource(`/api/events?cursor=${before}`);
      source.onopen = () => tell({ kind: KIND.on });
      source.onmessage = (message) => {
        const event = told(JSON.parse(message.data), before);
        before = event.sequence;
        tell(event);
      };
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
    // Another page cannot take back what this one has shown, and whoever goes there looks at it.
    const hide = () => { for (const notice of shown.values()) notice?.close(); };
    addEventListener("pagehide", () => { source.close(); hide(); release(); }, { once: true });
  }

  /** Each event names the position before it, so that whoever missed that one finds out. */
  const told = ({ sequence, type, subject }, before) => ({ kind: KIND.event, before, sequence, type, subject });

  function hear(message) {
    if (message.kind === KIND.event) {
      // What came already is not told again.
      if (message.sequence <= last) return;
      if (message.before > last) { catchUp(); return; }
      last = message.sequence;
      document.dispatchEvent(new CustomEvent("ropewalk:event", { detail: message }));
      refreshSoon();
      if (isLeading && message.type.startsWith("question.")) tellQuestions();
    } else if (message.kind === KIND.live) {
      showWords(message.event);
      document.dispatchEvent(new CustomEvent("ropewalk:live", { detail: message.event }));
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
    if (standing !== KIND.on && kind === KIND.on) { refreshSoon(); catchUp(); }
    if (kind === KIND.on) catchWords();
    standing = kind;
    say();
  }

  // Why this page is not made fresh, and whether it can be loaded without a loss; no words where it is fresh.
  let held = { words: "", canLoad: false };
  document.addEventListener("ropewalk:held", ({ detail }) => { held = detail; say(); });
  let said = "";
  function say() {
    const place = document.getElementById("live");
    const words = [SAID[standing], held.words].filter(Boolean).join(". ");
    // What stands there already is not read out again, and its link keeps the focus.
    if (!place || words === said) return;
    said = words;
    place.textContent = words;
    if (!held.canLoad) return;
    const load = document.createElement("a");
    load.href = location.pathname + location.search;
    load.textContent = "Load it";
    place.append(" ", load);
  }

  // What the other tab told before this page listened, or while it could not be reached, is asked for. Where that fails, the
  // next event shows it.
  let isCatching = false, isMissed = false;
  async function catchUp() {
    isMissed = true;
    if (isCatching) return;
    isCatching = true;
    while (isMissed) {
      isMissed = false;
      const asked = fetch(`/api/events?cursor=${last}&limit=500`);
      const page = await asked.then((answer) => answer.ok ? answer.json() : null).catch(() => null);
      if (!page) break;
      for (const event of page.items) hear(told(event, last));
      if (page.next) isMissed = true;
    }
    isCatching = false;
    catchWords();
  }

  // --- Fresh pages --------------------------------------------------------------------------------------------------
  let planned = 0, isStale = false;
  function refreshSoon() {
    if (document.hidden) { isStale = true; return; }
    if (!planned && document.getElementById("palette")) planned = setTimeout(refresh, 300);
  }

  async function refresh() {
    planned = 0;
    isStale = false;
    const swap = { target: "#page", select: "#page", swap: "outerMorph" };
    await keepWords(() => htmx.ajax("GET", location.pathname + location.search, swap));
    document.dispatchEvent(new CustomEvent("ropewalk:fresh"));
    dress();
  }
  // Whoever has done with a field may let it go.
  const letGo = () => { if (held.words) refreshSoon(); };
  document.addEventListener("focusout", letGo);
  document.addEventListener("ropewalk:taken-back", letGo);

  // --- Words as they come -------------------------------------------------------------------------------------------
  // The server knows them from their beginning, and that they have become a message; what comes is put behind them.
  const words = () => document.getElementById("words");
  function showWords(event) {
    const place = words();
    if (event.type !== "ideation.delta" || event.subject !== place?.dataset.subject) return;
    const { try: ofTry, part, text } = event.data;
    if (place.dataset.try !== ofTry && part === 0) putWords(place, { try: ofTry, parts: 0 }, "");
    const parts = Number(place.dataset.parts);
    // What is here already is not put there again, and what was missed is asked for.
    if (place.dataset.try !== ofTry || part > parts) lookForWords();
    else if (part === parts) putWords(place, { try: ofTry, parts: part + 1 }, place.textContent + text);
  }

  function putWords(place, data, text) {
    Object.assign(place.dataset, data);
    place.textContent = text;
    place.hidden = !text.trim();
  }

  /** Looks for what was said after this page was made and before anybody listened. */
  const catchWords = () => { if ("awaited" in (words()?.dataset ?? {})) lookForWords(); };

  let isLooking = false;
  async function lookForWords() {
    if (isLooking) return;
    isLooking = true;
    const answer = await fetch(location.pathname, { headers: { Accept: "text/html" } }).catch(() => null);
    const found = answer?.ok && new DOMParser().parseFromString(await answer.text(), "text/html").getElementById("words");
    isLooking = false;
    const place = words();
    if (!found || !place || isOlder(found, place)) return;
    putWords(place, { ...found.dataset }, found.textContent);
  }

  const isOlder = (one, other) => one.dataset.try === other.dataset.try && Number(one.dataset.parts) < Number(other.dataset.parts);

  /** Makes the page fresh by `swap`; words that came while it was on its way stay. */
  async function keepWords(swap) {
    const before = words()?.cloneNode(true);
    await swap();
    const place = words();
    if (before && place && isOlder(place, before)) putWords(place, { ...before.dataset }, before.textContent);
  }

  // --- Questions, where the person wanted to be told of them ------------------------------------------------------------
  const WANTED = "ropewalk-notices";
  const shown = new Map();
  const isWanted = () => self.Notification?.permission === "granted" && localStorage.getItem(WANTED) === "on";

  // Those that this person is asked first, as the inbox has them.
  async function questions() {
    const answer = await fetch("/questions", { headers: { Accept: "text/html" } }).catch(() => null);
    if (!answer?.ok) return null;
    const inbox = new DOMParser().parseFromString(await answer.text(), "text/html");
    return new Map([...inbox.querySelectorAll(".question[data-mine]")].map((one) => [one.id, one]));
  }

  // What stood there before is no news.
  async function countQuestions() {
    if (!isWanted()) return;
    for (const id of (await questions() ?? new Map()).keys()) if (!shown.has(id)) shown.set(id, null);
  }

  async function tellQuestions() {
    if (!isWanted()) return;
    const open = await questions();
    if (!open) return;
    // Answered here or elsewhere, it goes away.
    for (const [id, notice] of shown) if (!open.has(id)) { notice?.close(); shown.delete(id); }
    for (const [id, one] of open) {
      if (shown.has(id)) continue;
      shown.set(id, null);
      // Whoever looks at a page sees it there.
      if (document.hasFocus()) continue;
      const words = one.querySelector(".asked").textContent.trim().replace(/\s+/g, " ").slice(0, 200);
      const notice = new Notification(`Ropewalk asks: ${one.querySelector("h2 a").textContent}`, { body: words, tag: id });
      notice.onclick = () => { focus(); location.href = one.querySelector("h2 a").getAttribute("href"); };
      shown.set(id, notice);
    }
  }

  function offerNotices() {
    const button = document.getElementById("notices");
    if (!button || !self.Notification) return;
    const name = () => {
      button.disabled = Notification.permission === "denied";
      button.textContent = button.disabled ? "This browser may not tell you of questions"
        : isWanted() ? "Do not tell me of questions" : "Tell me of questions";
    };
    button.addEventListener("click", async () => {
      if (isWanted()) localStorage.removeItem(WANTED);
      else if (await Notification.requestPermission() === "granted") localStorage.setItem(WANTED, "on");
      await countQuestions();
      name();
    });
    name();
    button.hidden = false;
  }

  // --- Where we are ---------------------------------------------------------------------------------------------------
  function dress() {
    for (const link of document.querySelectorAll(".top nav a")) {
      const path = new URL(link.href).pathname;
      const isHere = path === "/" ? location.pathname === "/" : location.pathname.startsWith(path);
      if (isHere) link.setAttribute("aria-current", "page"); else link.removeAttribute("aria-current");
    }
    for (const button of document.querySelectorAll("[data-unfold]")) button.hidden = false;
    chosen?.classList.add("chosen");
    zoom();
  }

  // --- Pictures ---------------------------------------------------------------------------------------------------------
  // How much larger or smaller a picture is than it was drawn; it stays so when the page is made fresh.
  let scale = 1;
  function zoom() {
    for (const picture of document.querySelectorAll(".graph[data-zoom] svg")) {
      const [, , width, height] = picture.getAttribute("viewBox").split(" ");
      picture.setAttribute("width", width * scale);
      picture.setAttribute("height", height * scale);
    }
    for (const bar of document.querySelectorAll(".zoom")) bar.hidden = false;
  }
  document.addEventListener("click", (click) => {
    const step = click.target.dataset?.step;
    if (!step) return;
    scale = Math.min(Math.max(scale * Number(step), 0.25), 4);
    zoom();
  });

  // --- What is folded away ---------------------------------------------------------------------------------------------
  document.addEventListener("click", (click) => {
    const folded = [...click.target.closest?.("[data-unfold]")?.closest("section, main").querySelectorAll("details") ?? []];
    const opens = folded.some((one) => !one.open);
    for (const one of folded) one.open = opens;
  });

  // --- Keys -----------------------------------------------------------------------------------------------------------
  const isTyping = (target) => target.closest?.("input, textarea, select, [contenteditable]");
  let chosen = null;
  function choose(step) {
    const entries = [...document.querySelectorAll("[data-entry]")];
    if (!entries.length) return;
    chosen?.classList.remove("chosen");
    chosen = entries[Math.min(Math.max(entries.indexOf(chosen) + step, 0), entries.length - 1)];
    chosen.classList.add("chosen");
    chosen.scrollIntoView({ block: "nearest" });
    chosen.querySelector("a, button, textarea")?.focus({ preventScroll: true });
  }

  /** Takes a choice of the chosen question by its number. What has consequences, or takes words, is only gone to. */
  function pick(number) {
    const question = chosen?.isConnected ? chosen : document.querySelector("[data-alone]");
    const form = question?.querySelectorAll(".choices form")[number - 1];
    take(form?.querySelector("button"), question);
  }

  /** Makes the chosen entry done, or what the whole page is about; an entry that nobody chose is left alone. */
  function finish() {
    const ways = chosen?.isConnected ? chosen.querySelectorAll("[data-done]") : document.querySelectorAll("[data-done]:not([data-entry] *)");
    if (ways.length === 1) take(ways[0], ways[0].closest(".question"));
  }

  /** Presses a button, unless it stands in a question of consequence or beside a field for words. */
  function take(button, question) {
    if (!button || button.disabled) return;
    const field = button.form.querySelector("textarea");
    if (field || question?.dataset.consequential !== undefined) (field ?? button).focus(); else button.click();
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
  function openPalette() {
    const palette = document.getElementById("palette");
    if (!palette || palette.open) return;
    everywhere = links();
    palette.showModal();
    const wanted = document.getElementById("wanted");
    wanted.value = "";
    list("");
    wanted.focus();
  }

  // What no page here shows is asked for, once whoever types stops for a moment.
  let search = 0;
  function searchSoon(words) {
    clearTimeout(search);
    if (!words.trim()) return;
    search = setTimeout(async () => {
      const answer = await fetch(`/find?${new URLSearchParams({ words })}`, { headers: { Accept: "text/html" } }).catch(() => null);
      if (!answer?.ok) return;
      const found = new DOMParser().parseFromString(await answer.text(), "text/html");
      for (const link of found.querySelectorAll("main a[data-found]")) {
        const href = link.getAttribute("href");
        if (!everywhere.has(href)) everywhere.set(href, link.textContent.trim());
      }
      list(document.getElementById("wanted").value);
    }, 200);
  }

  function list(wanted) {
    const words = wanted.toLowerCase().split(/\s+/);
    const found = document.getElementById("found");
    const focused = found.contains(document.activeElement) ? document.activeElement.getAttribute("href") : null;
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
    if (!found.children.length) {
      const none = document.createElement("li");
      none.className = "hint";
      none.textContent = "Nothing is called so";
      found.append(none);
    }
    if (focused) [...found.querySelectorAll("a")].find((link) => link.getAttribute("href") === focused)?.focus();
  }

  /** Moves through what was found with the arrow keys, and back into the field above. */
  function step(key) {
    const all = [document.getElementById("wanted"), ...document.querySelectorAll("#found a")];
    const next = all[all.indexOf(document.activeElement) + (key.key === "ArrowDown" ? 1 : -1)];
    if (next) { key.preventDefault(); next.focus(); }
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
    if (["ArrowDown", "ArrowUp"].includes(key.key) && document.getElementById("palette")?.open) { step(key); return; }
    if (key.ctrlKey || key.metaKey || key.altKey || isTyping(key.target) || document.querySelector("dialog[open]")) return;
    if (key.key === "?") { document.getElementById("keys")?.showModal(); return; }
    if (key.key === "j") { choose(1); return; }
    if (key.key === "k") { choose(-1); return; }
    if (key.key === "e") { finish(); return; }
    // A digit that leads to a field is not written there.
    if (/^[1-9]$/.test(key.key)) { key.preventDefault(); pick(Number(key.key)); return; }
    const link = document.querySelector(`[data-key="${CSS.escape(key.key)}"]`);
    if (link) { key.preventDefault(); link.click(); }
  });
  document.addEventListener("input", (input) => { if (input.target.id === "wanted") { list(input.target.value); searchSoon(input.target.value); } });

  addEventListener("pageshow", (shown) => { if (shown.persisted) location.reload(); });

  // What was said on lines was taken, and need not be kept here any more.
  if (location.hash === "#said") {
    sessionStorage.removeItem(sessionStorage.getItem("comments sent"));
    history.replaceState(null, "", location.pathname);
  }

  dress();
  offerNotices();
  channel.onmessage = (message) => hear(message.data);
  channel.postMessage({ kind: KIND.here });
  catchUp();
  document.addEventListener("visibilitychange", () => { if (!document.hidden && isStale) refreshSoon(); });
  navigator.locks.request(LOCK, () => new Promise((release) => lead(release)));
})();
