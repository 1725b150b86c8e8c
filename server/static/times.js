// Tells each time of a page as whoever reads it wants: in the zone of this place, in UTC, or as how long ago it is.
"use strict";
(() => {
  const CHOSEN = "ropewalk-times";
  const UNITS = [["day", 86_400], ["hour", 3_600], ["minute", 60]];
  const form = (zone) => new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short", ...zone });
  const [near, plain] = [form({}), form({ timeZone: "UTC" })];
  const relative = new Intl.RelativeTimeFormat(undefined, { numeric: "always" });
  function ago(at) {
    const seconds = Math.round((at - Date.now()) / 1000);
    const [unit, size] = UNITS.find(([, size]) => Math.abs(seconds) >= size) ?? ["second", 1];
    return relative.format(Math.trunc(seconds / size), unit);
  }
  const WAYS = { here: (at) => near.format(at), utc: (at) => `${plain.format(at)} UTC`, ago };
  const chosen = () => WAYS[localStorage.getItem(CHOSEN)] ? localStorage.getItem(CHOSEN) : "here";

  function tell() {
    const way = WAYS[chosen()];
    for (const time of document.querySelectorAll("time")) {
      const at = new Date(time.dateTime);
      if (!Number.isNaN(at.valueOf())) { time.textContent = way(at); time.title = time.dateTime; }
    }
  }

  const select = document.querySelector("#times select");
  if (select) {
    select.value = chosen();
    select.parentElement.hidden = false;
    select.addEventListener("change", () => { localStorage.setItem(CHOSEN, select.value); tell(); });
  }
  tell();
  document.addEventListener("ropewalk:fresh", tell);
  // Another tab has chosen, or it is longer ago.
  addEventListener("storage", () => { if (select) select.value = chosen(); tell(); });
  setInterval(() => { if (chosen() === "ago") tell(); }, 30_000);
})();
