// Takes the pictures of README.md from a rehearsal that is watched. Arguments: the link that `rehearse --watch` printed, and
// the folder to put them into. Run by `docs/pictures/draw`.
"use strict";
const { join } = require("node:path");
const { chromium } = require("playwright-core");
const { moments } = require("./moments.cjs");

// What stands below each other on these is seen at once.
const TALL = { clip: { x: 0, y: 0, width: 1200, height: 1040 }, fullPage: true };
const SHAPES = { build: TALL, task: TALL };
const SIZE = { width: 1200, height: 760 };

(async () => {
  const [link, folder] = process.argv.slice(2);
  const browser = await chromium.launch({
    executablePath: process.env.ROPEWALK_CHROMIUM || "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"],
  });
  const context = await browser.newContext({ viewport: SIZE, colorScheme: "light", locale: "en-GB", timezoneId: "UTC" });
  const page = await context.newPage();
  await page.goto(link);
  // What is opened before it has gone on by itself would be left again.
  await page.waitForURL((url) => url.pathname !== "/login");
  await moments(page, link, (name) => page.screenshot({ path: join(folder, `${name}.png`), ...SHAPES[name] }));
  await browser.close();
})().catch((error) => { console.error(error); process.exit(1); });
