// Lets people say something about a line where it stands, and keeps it until it is sent.
"use strict";
(() => {
  const form = document.getElementById("comments");
  if (!form) return;
  const kept = `comments ${location.pathname} ${form.elements.of.value}`;
  form.querySelector(".by-hand").remove();

  function write(line, text) {
    const open = line.nextElementSibling;
    if (open?.classList.contains("said")) { open.querySelector("textarea").focus(); return open; }
    const said = document.createElement("div");
    said.className = "said";
    const words = document.createElement("textarea");
    words.rows = 3;
    words.maxLength = 4000;
    words.value = text;
    words.setAttribute("aria-label", `What should be different in line ${line.dataset.line} of ${fileOf(line)}`);
    const away = document.createElement("button");
    away.type = "button";
    away.className = "quiet";
    away.textContent = "Take it back";
    away.addEventListener("click", () => { said.remove(); line.querySelector(".number").focus(); keep(); });
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
    const comments = all();
    sessionStorage.setItem(kept, JSON.stringify(comments));
    const count = comments.filter((comment) => comment.text.trim()).length;
    document.getElementById("said").textContent = count === 1 ? "1 comment" : `${count} comments`;
    form.querySelector("button").disabled = count === 0;
  }

  for (const line of document.querySelectorAll("[data-line]")) {
    const number = document.createElement("button");
    number.type = "button";
    number.className = "number";
    number.textContent = line.dataset.line;
    number.setAttribute("aria-label", `Comment on line ${line.dataset.line}`);
    number.addEventListener("click", () => { write(line, "").querySelector("textarea").focus(); keep(); });
    line.querySelector(".number").replaceWith(number);
  }
  for (const { file, side, line, text } of JSON.parse(sessionStorage.getItem(kept) ?? "[]")) {
    const place = document.querySelector(`[data-file="${CSS.escape(file)}"] [data-side="${side}"][data-line="${line}"]`);
    if (place) write(place, text);
  }
  keep();
  form.addEventListener("submit", () => {
    all().filter((comment) => comment.text.trim()).forEach((comment, number) => {
      for (const [name, value] of Object.entries(comment)) {
        const field = document.createElement("input");
        field.type = "hidden";
        field.name = `${name}.${number}`;
        field.value = value;
        form.append(field);
      }
    });
    sessionStorage.removeItem(kept);
  });
})();
