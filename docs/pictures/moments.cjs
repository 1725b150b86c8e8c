// Goes through a rehearsal that is watched, to each moment that README.md has a picture of. Used by `draw.cjs`, which takes
// the pictures, and by a walk of the tests, so that both know the pages by the same marks.
"use strict";

// A rehearsal goes slowly enough to follow.
const PATIENCE = 600_000;

/** Leads a page of whoever is logged in to each moment, and calls `take` with its name once it can be seen. */
async function moments(page, base, take) {
  page.setDefaultTimeout(PATIENCE);
  const open = (path) => page.goto(new URL(path, base).href);

  await open("/builds");
  await page.getByRole("link", { name: "habit-streaks, revision" }).click();
  await page.getByText(/[4-7]\/8 tasks/).waitFor();
  await page.locator(".timeline a").first().waitFor();
  await take("build");
  const build = page.url();
  await page.getByRole("link", { name: /^revision \d/ }).click();
  await page.getByText("Approved by").waitFor();
  await take("specification");
  // The last task of the build, as its model works on it.
  await open(`${build}/tasks/T-008`);
  await page.locator("#transcript .difference").first().waitFor();
  await take("task");
  await open("/questions");
  await page.getByText("A build has ended").first().waitFor();
  await take("inbox");
  await page.getByRole("link", { name: "See what landing comes to" }).first().click();
  await page.getByRole("button", { name: "Land it" }).waitFor();
  await take("landing");
  // The second idea begins after the first.
  await open("/");
  await page.locator("#idea-bill-calendar").waitFor();
  await take("board");
}

module.exports = { moments };
