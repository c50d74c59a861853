import { Database } from "bun:sqlite";
import { expect, test } from "bun:test";
import { hash } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { RELEASES, releaseOfTables, SQLITE_MIGRATIONS } from "../../src/store/sql/migration-steps.ts";
import { RELEASED_STEPS } from "../../src/store/sql/released-steps.ts";

/** The digest of the steps of each release, which never change. */
const DIGESTS = { "1.3.0": "a96ed2d4ffb6068c" };

test("the steps of a release are never edited: add one of the release to come instead", () => {
  const digests = RELEASED_STEPS.map(({ release, steps }) => [
    release,
    hash("sha256", JSON.stringify(steps).replaceAll(/(?:\\n|\s)+/g, " ")).slice(0, 16),
  ]);
  expect(Object.fromEntries(digests)).toEqual(DIGESTS);
});

test("the steps that are not released are of the release to come, while the changelog begins with it", () => {
  const changelog = readFileSync(join(import.meta.dir, "../../CHANGELOG.md"), "utf8");
  const headings = [...changelog.matchAll(/^## (\S+)/gm)].map(([, heading = ""]) => heading);
  const isReleased = headings[0] !== "Unreleased";
  const [next = ""] = RELEASES.map(({ release }) => release);
  const [newest = ""] = headings.slice(isReleased ? 0 : 1);
  expect({ next, newest, order: Bun.semver.order(next, newest) }).toMatchObject({
    order: isReleased ? 0 : 1,
  });
});

test.each([
  [undefined, 24, 26],
  ["1.3.0", 25, 27],
  ["1.3.0", 26, 28],
] as const)("the newest release whose tables a database has is %s", (release, sqlite, postgres) => {
  expect(releaseOfTables(sqlite, "sqlite")).toBe(release);
  expect(releaseOfTables(postgres, "postgres")).toBe(release);
});

const POLICY_STEP = "the first limits of the plans and ban rules";

test.each([
  ["none", ""],
  [
    "those that release 1.3.0 has stored",
    `INSERT INTO plans VALUES ('free', 7, 70), ('pro', 8, 80), ('business', 9, 90), ('anonymous', 1, 10);
     INSERT INTO ban_rules VALUES (1, 3, 0, 60000, 60000);`,
  ],
])("tables get the limits and ban rules of release 1.3.0, unless they have some: %s", (_, stored) => {
  using database = new Database(":memory:");
  for (const { name, sql } of SQLITE_MIGRATIONS) database.run(name === POLICY_STEP ? stored + sql : sql);
  const plans = database.query("SELECT * FROM plans").values();
  const rules = database.query("SELECT * FROM ban_rules").values();
  const isStored = stored !== "";
  expect(Object.fromEntries(plans.map(([name, ...limits]) => [name, limits]))).toEqual(
    isStored
      ? { free: [7, 70], pro: [8, 80], business: [9, 90], anonymous: [1, 10] }
      : { free: [60, 1_000], pro: [300, 10_000], business: [1_000, 100_000], anonymous: [300, 10_000] },
  );
  expect(rules).toEqual([isStored ? [1, 3, 0, 60_000, 60_000] : [1, 10, 1_000, 300_000, 2_400_000]]);
});
