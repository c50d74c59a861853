import { expect, test } from "bun:test";
import { fillNewTables } from "../../src/archive/fill-tables.ts";
import type { WorkProgress } from "../../src/archive/progress.ts";
import { temporaryDirectory } from "../../trials/harness/cleanup.ts";
import { contentsIn, sqliteIn } from "../../trials/harness/contents.ts";
import { fillData } from "./sample-data.ts";

test("new tables report all rows of each step, and are there when they are verified", async () => {
  const [source, target] = [temporaryDirectory("source"), temporaryDirectory("target")];
  await fillData(source, 1_100);
  const [from, to] = [sqliteIn(source), sqliteIn(target)];
  const existedBefore: boolean[] = [];
  const reports: WorkProgress[] = [];
  await using reader = await from.read();
  await fillNewTables({
    source: reader,
    to,
    beforePublish: async () => void existedBefore.push(await to.exists()),
    onProgress: (report) => reports.push(report),
  });
  const contents = await contentsIn(to);
  expect(contents).toEqual(await contentsIn(from));
  expect([contents.tables["pets"]?.rows, existedBefore]).toEqual([1_099, [false]]);
  for (const { checksum } of Object.values(contents.tables)) expect(checksum).toMatch(/^[\da-f]{16}$/);
  const total = Object.values(contents.tables).reduce((sum, { rows }) => sum + rows, 0);
  const isLast = ({ step }: WorkProgress, index: number) => step !== reports[index + 1]?.step;
  const ends = reports
    .filter(isLast)
    .map(({ step, done = 0, share = 0 }) => `${step} ${done - total} of ${Math.round(done / share) - total}`);
  expect(ends).toEqual(["copying 0 of 0", "comparing 0 of 0"]);
});
