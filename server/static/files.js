// Lets people send files along with what they say; each is a message of its own, the first with the words.
"use strict";
(() => {
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

  form.addEventListener("submit", async (submit) => {
    if (chosen.files.length === 0) return;
    submit.preventDefault();
    const button = form.querySelector("button");
    button.disabled = true;
    try {
      for (const file of [...chosen.files]) {
        await send(file, form.elements.text.value);
        form.elements.text.value = "";
      }
      location.reload();
    } catch (error) {
      told.textContent = `Not everything was sent: ${error.message}`;
      told.hidden = false;
      button.disabled = false;
    }
  });
})();
