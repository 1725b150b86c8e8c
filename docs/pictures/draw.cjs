// Takes the pictures of README.md from a rehearsal that is watched. Arguments: the link that `rehearse --watch` printed, and
// the folder to put them into. Run by `docs/pictures/draw`.
"use strict";
const { join } = require("node:path");
const { chromium } = require("playwright-core");

const SIZE = { width: 1200, height: 760 };
const PATIENCE = 600_000;

(async () => {
  const [link, folder] = process.argv.slice(2);
  const browser = await chromium.launch({
    executablePath: process.env.ROPEWALK_CHROMIUM || "/usr/bin/chromium",
    args: ["--no-sandbox", "--disable-gpu", "--host-resolver-rules=MAP * ~NOTFOUND , EXCLUDE 127.0.0.1"],
  });
  const context = await browser.newContext({ viewport: SIZE, colorScheme: "light", locale: "en-GB", timezoneId: "UTC" });
  const page = await context.newPage();
  page.setDefaultTimeout(PATIENCE);
  const open = (path) => page.goto(new URL(path, link).href);
  const take = (name) => page.screenshot({ path: join(folder, `${name}.png`) });

  await page.goto(link);
  // What is opened before it has gone on by itself would be left again.
  await page.waitForURL((url) => url.pathname !== "/login");
  await open("/builds");
  await page.getByRole("link", { name: "habit-streaks, revision" }).click();
  await page.getByText(/[4-7]\/8 tasks/).waitFor();
  await take("build");
  await page.getByRole("link", { name: /^revision \d/ }).click();
  await page.getByText("Approved by").waitFor();
  await take("specification");
  await open("/");
  await page.getByText("habit", { exact: false }).first().waitFor();
  await take("board");
  await open("/questions");
  await page.getByText("A build has ended").first().waitFor();
  await take("inbox");
  await browser.close();
})().catch((error) => { console.error(error); process.exit(1); });
