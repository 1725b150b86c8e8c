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
}

module.exports = { moments };
