// Lets people send files along with what they say; each is a message of its own, the first with the words.
"use strict";
(() => {
  // They stand in the address of a request, whose head is bounded.
  const WORDS = 4000;
  const place = document.getElementById("files");
  if (!place) return;
  const { form } = place.querySelector("input");
  const [chosen] = place.getElementsByTagName("input");
  const [told] = place.getElementsByClassName("refused");
  place.hidden = false;
  // Who sends a file need not say anything.
  chosen.addEventListener("change", () => { form.elements.text.required = chosen.files.length === 0; });

  async function send(file, words) {
    const details = new URLSearchParams({ name: file.name, words });
    const headers = { "x-csrf-token": form.elements.csrf.value, "content-type": file.type || "application/octet-stream" };
    const answer = await fetch(`${place.dataset.to}?${details}`, { method: "POST", headers, body: file });
    if (!answer.ok) throw new Error((await answer.json()).message);
  }

  /** Chooses these files alone. */
  function choose(files) {
    const kept = new DataTransfer();
    for (const file of files) kept.items.add(file);
    chosen.files = kept.files;
  }

  form.addEventListener("submit", async (submit) => {
    if (chosen.files.length === 0) return;
    submit.preventDefault();
    const button = form.querySelector("button");
    button.disabled = true;
    // So that it stays so while the page is made fresh.
    button.setAttribute("aria-busy", "true");
    const left = [...chosen.files];
    try {
      if (form.elements.text.value.length > WORDS) throw new Error(`with a file, say at most ${WORDS} letters`);
      for (; left.length > 0; left.shift()) {
        await send(left[0], form.elements.text.value);
        form.elements.text.value = "";
      }
      location.reload();
    } catch (error) {
      // What was sent is not sent again.
      choose(left);
      told.textContent = `Not everything was sent: ${error.message}`;
      told.hidden = false;
      button.disabled = false;
      button.removeAttribute("aria-busy");
    }
  });
})();
