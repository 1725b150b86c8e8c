// Tells each time of a page in the zone of whoever reads it.
"use strict";
(() => {
  const near = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
  function tell() {
    for (const time of document.querySelectorAll("time")) {
      const at = new Date(time.dateTime);
      if (!Number.isNaN(at.valueOf())) { time.textContent = near.format(at); time.title = time.dateTime; }
    }
  }
  tell();
  document.addEventListener("ropewalk:fresh", tell);
})();
