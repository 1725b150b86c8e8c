// Lets people say something about a line where it stands, and keeps it until it is sent.
"use strict";
(() => {
  const theForm = () => document.getElementById("comments");
  const kept = (form) => `comments ${location.pathname} ${form.elements.of.value}`;

  function write(line, text) {
    const open = line.nextElementSibling;
    if (open?.classList.contains("said")) { open.querySelector("textarea").focus(); return open; }
    const said = document.createElement("div");
    said.className = "said";
    const words = document.createElement("textarea");
    words.rows = 3;
    words.dataset.most = 4096;
    words.value = text;
    words.setAttribute("aria-label", `What should be different in line ${line.dataset.line} of ${fileOf(line)}`);
    const away = document.createElement("button");
    away.type = "button";
    away.className = "quiet";
    away.textContent = "Take it back";
    away.addEventListener("click", () => {
      said.remove();
      line.querySelector(".number").focus();
      keep();
      document.dispatchEvent(new CustomEvent("ropewalk:taken-back"));
    });
    words.addEventListener("input", keep);
    said.append(words, away);
    line.after(said);
    return said;
  }

  const fileOf = (line) => line.closest("[data-file]").dataset.file;

  function all() {
    return [...document.querySelectorAll(".said")].map((said) => {
      const line = said.previousElementSibling;
      const text = said.querySelector("textarea").value;
      return { file: fileOf(line), side: line.dataset.side, line: line.dataset.line, text };
    });
  }

  function keep() {
    const form = theForm();
    const comments = all();
    sessionStorage.setItem(kept(form), JSON.stringify(comments));
    const count = comments.filter((comment) => comment.text.trim()).length;
    document.getElementById("said").textContent = count === 1 ? "1 comment" : `${count} comments`;
    form.querySelector("button").disabled = count === 0;
  }

  /** Shows what was said on lines of another revision and never sent, to be copied or forgotten. */
  function showOlder(form) {
    document.getElementById("older")?.remove();
    const keys = Object.keys(sessionStorage).filter((key) => key.startsWith(`comments ${location.pathname} `) && key !== kept(form));
    const said = keys.flatMap((key) => JSON.parse(sessionStorage.getItem(key))).filter((comment) => comment.text.trim());
    if (!said.length) return;
    const older = document.createElement("section");
    older.id = "older";
    const title = document.createElement("h3");
    title.textContent = "Said on another revision, and not sent";
    older.append(title);
    for (const { file, line, text } of said) {
      const one = document.createElement("p");
      one.textContent = `${file}, line ${line}: ${text}`;
      older.append(one);
    }
    const forget = document.createElement("button");
    forget.type = "button";
    forget.className = "quiet";
    forget.textContent = "Forget these";
    forget.addEventListener("click", () => { for (const key of keys) sessionStorage.removeItem(key); older.remove(); });
    older.append(forget);
    form.after(older);
  }

  // What the server sends knows nothing of the buttons, nor of what was said.
  function dress() {
    const form = theForm();
    if (!form) return;
    form.querySelector(".by-hand")?.remove();
    showOlder(form);
    for (const line of document.querySelectorAll("[data-line]")) {
      const number = document.createElement("button");
      number.type = "button";
      number.className = "number";
      number.textContent = line.dataset.line;
      number.setAttribute("aria-label", `Comment on line ${line.dataset.line}`);
      number.addEventListener("click", () => { write(line, "").querySelector("textarea").focus(); keep(); });
      line.querySelector(".number").replaceWith(number);
    }
    for (const { file, side, line, text } of JSON.parse(sessionStorage.getItem(kept(form)) ?? "[]")) {
      const place = document.querySelector(`[data-file="${CSS.escape(file)}"] [data-side="${side}"][data-line="${line}"]`);
      if (place) write(place, text);
    }
    keep();
  }

  dress();
  document.addEventListener("htmx:after:swap", dress);
  document.addEventListener("submit", ({ target: form }) => {
    if (form !== theForm()) return;
    all().filter((comment) => comment.text.trim()).forEach((comment, number) => {
      for (const [name, value] of Object.entries(comment)) {
        const field = document.createElement("input");
        field.type = "hidden";
        field.name = `${name}.${number}`;
        field.value = value;
        form.append(field);
      }
    });
    // They are forgotten once they were taken, see `ropewalk.js`.
    sessionStorage.setItem("comments sent", kept(form));
  });
})();
