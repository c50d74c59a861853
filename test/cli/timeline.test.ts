import { expect, spyOn, test } from "bun:test";
import { existsSync, readFileSync, statfsSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { UNKNOWN_TIMELINE } from "../../src/domain/timeline.ts";
import { scheduler } from "../../src/runtime/scheduler.ts";
import { acquireLock } from "../../src/store/sqlite/process-lock.ts";
import { directoryAt } from "../data-directory.ts";
import { until } from "../timing.ts";
import { cliDirectory } from "./cli.ts";

const timeline = (number: number) => ({ number, mark: "" });

test("a timeline waits for the process that stores another one, and the later of the two stays", async () => {
  const directory = directoryAt(cliDirectory());
  const { latestTimeline, files } = directory;
  await latestTimeline.raise(timeline(1));
  const other = acquireLock(files.timelineLock);
  const raised = latestTimeline.raise(timeline(2));
  writeFileSync(files.timeline, "3 other\n");
  other?.release();
  expect(await raised).toEqual({ number: 3, mark: "other" });
  expect(readFileSync(files.timeline, "utf8")).toBe("3 other\n");
});

test("a timeline that is not later is read without the lock", async () => {
  const { latestTimeline, files } = directoryAt(cliDirectory());
  await latestTimeline.raise(timeline(2));
  using _ = acquireLock(files.timelineLock);
  expect(await latestTimeline.raise(UNKNOWN_TIMELINE)).toEqual(timeline(2));
  expect(await latestTimeline.raise(timeline(1))).toEqual(timeline(2));
});

test("a timeline is given up when another process holds the lock for more than five seconds", async () => {
  const { latestTimeline, files } = directoryAt(cliDirectory());
  using _ = acquireLock(files.timelineLock);
  let now = 7_000;
  using spies = new DisposableStack();
  spies.use(spyOn(scheduler, "now").mockImplementation(() => now));
  spies.use(spyOn(scheduler, "random").mockReturnValue(0.5));
  const pauses = spies.use(spyOn(scheduler, "sleep"));
  const outcome = latestTimeline.raise(timeline(1)).catch((error: Error) => error.message);
  const attempts = (count: number) => until(() => pauses.mock.calls.length >= count, 5_000);
  await attempts(1);
  now += 5_000;
  await attempts(pauses.mock.calls.length + 2);
  now++;
  expect(await outcome).toBe(`another process holds ${files.timelineLock}`);
  expect(pauses.mock.calls[0]).toEqual([6]);
});

test("a timeline is replaced by an earlier one if that is asked for, and is not stored without the directory", async () => {
  const path = cliDirectory();
  const { latestTimeline } = directoryAt(path);
  await latestTimeline.raise(timeline(2));
  await latestTimeline.replace(timeline(1));
  expect(await latestTimeline.raise(UNKNOWN_TIMELINE)).toEqual(timeline(1));
  const missing = directoryAt(join(path, "missing"));
  expect(await missing.latestTimeline.raise(timeline(3))).toEqual(timeline(3));
  expect(existsSync(missing.path)).toBe(false);
});

test("the free space is that of the disk on which the directory is or will be created", () => {
  const path = cliDirectory();
  const { bavail, bsize } = statfsSync(path);
  for (const directory of [path, join(path, "missing")])
    expect(Math.abs(directoryAt(directory).freeBytes() - bavail * bsize)).toBeLessThan(1e9);
});

/** Raises every fourth number, and prints the numbers after which a lower one was stored. */
const CHILD = `
  const { DataDirectory } = await import(process.argv[1]);
  const { latestTimeline } = new DataDirectory({ path: process.argv[2], environment: "production" });
  for (let number = Number(process.argv[3]); number <= 120; number += 4) {
    await latestTimeline.raise({ number, mark: "" });
    const stored = await latestTimeline.raise({ number: 0, mark: "" });
    if (stored.number < number) console.log(number + " became " + stored.number);
  }`;

test("of the timelines that processes store at the same time none replaces a later one", async () => {
  const path = cliDirectory();
  const module = join(import.meta.dir, "../../src/data-directory.ts");
  const children = [1, 2, 3, 4].map((first) =>
    Bun.spawn([process.execPath, "-e", CHILD, module, path, `${first}`], { stdout: "pipe", stderr: "pipe" }),
  );
  const outputs = await Promise.all(
    children.map(async ({ stdout, stderr }) => (await stdout.text()) + (await stderr.text())),
  );
  expect(outputs).toEqual(["", "", "", ""]);
  expect(await directoryAt(path).latestTimeline.raise(UNKNOWN_TIMELINE)).toEqual(timeline(120));
}, 60_000);
