// Draws the graph of a build again and again in a browser, and prints the middle of the times in milliseconds. Arguments:
// a link to log in by, and the path of the build.
//
// The graph is taken out of its page and put back in; what is timed is everything from there to the next frame: the parse,
// the style, the layout and the paint.
"use strict";
const { chromium } = require("playwright-core");
const ROUNDS = 15;

(async () => {
  const [link, path] = process.argv.slice(2);
  const browser = await chromium.launch({
    executablePath: process.env.ROPEWALK_CHROMIUM || "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"],
  });
  const page = await browser.newPage({ viewport: { width: 1280, height: 900 } });
  await page.goto(link);
  await page.goto(new URL(path, link).href);
  const times = await page.evaluate(async (rounds) => {
    const place = document.querySelector(".graph");
    const text = place.innerHTML;
    const frame = () => new Promise((drawn) => requestAnimationFrame(() => setTimeout(drawn)));
    const found = [];
    for (let round = 0; round < rounds; round += 1) {
      place.replaceChildren();
      await frame();
      const begun = performance.now();
      place.innerHTML = text;
      await frame();
      found.push(performance.now() - begun);
    }
    if (place.querySelectorAll("rect").length < 500) throw new Error("not every task was drawn");
    return found;
  }, ROUNDS);
  console.log(times.sort((one, other) => one - other)[Math.floor(ROUNDS / 2)].toFixed(1));
  await browser.close();
})().catch((error) => { console.error(error); process.exit(1); });
