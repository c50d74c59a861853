import { expect, test } from "bun:test";
import type { InputFile } from "../../src/archive/files.ts";
import { importPets } from "../../src/archive/import.ts";
import { type ImportProgress, NO_PROGRESS } from "../../src/archive/import-store.ts";

/** 2,500 rows of NDJSON in pieces of 400; the rows 8, 1,008 and 2,008 are invalid. */
const PIECES = Array.from({ length: 7 }, (_, piece) =>
  Array.from({ length: Math.min(400, 2_500 - piece * 400) }, (_, row) => (piece * 400 + row) % 1_000 === 7)
    .map((isInvalid) => `{"name":${isInvalid ? 5 : '"Rex"'},"categoryId":1}\n`)
    .join(""),
);

/** Checks the rows without a database, and returns the result with everything that was reported. */
async function check({
  pieces = PIECES,
  maxErrors = 100,
  from = NO_PROGRESS,
  isStopped = (_pieces: number) => false,
}) {
  const rejected: number[] = [];
  const reports: (readonly [bytes: number, progress: ImportProgress])[] = [];
  let read = 0;
  const input: InputFile = {
    size: 0,
    fingerprint: "",
    async *texts(onRead) {
      for (const piece of pieces) {
        onRead(++read);
        yield piece;
      }
    },
    [Symbol.dispose]() {},
  };
  const result = await importPets({
    input,
    keepsIds: false,
    onConflict: "reject",
    maxErrors,
    store: undefined,
    commit: undefined,
    from,
    onRejected: ({ row }) => rejected.push(row.line),
    onProgress: (progress, bytes) => reports.push([bytes, progress]),
    isStopped: () => isStopped(read),
  });
  return { ...result, rejected, reports };
}

const progress = (rows: number, rejected: number) => {
  return { ...NO_PROGRESS, rows, added: rows - rejected, rejected };
};

test("rows are checked a thousand at a time, and each batch reports all that are done", async () => {
  expect(await check({})).toEqual({
    end: "complete",
    progress: progress(2_500, 3),
    rejected: [8, 1_008, 2_008],
    reports: [
      [3, progress(1_000, 1)],
      [5, progress(2_000, 2)],
      [7, progress(2_500, 3)],
    ],
  });
});

test("as many rows are rejected as --max-errors says, and the next one ends the import", async () => {
  expect(await check({ maxErrors: 3 })).toMatchObject({ end: "complete" });
  const { reports, ...result } = await check({ maxErrors: 2 });
  expect(result).toEqual({
    end: "too many errors",
    progress: progress(2_008, 3),
    rejected: [8, 1_008, 2_008],
  });
  expect(reports.map(([, { rows }]) => rows)).toEqual([1_000, 2_000, 2_008]);
  const none = { end: "too many errors", progress: progress(2_008, 3), rejected: [], reports: [] };
  expect(await check({ maxErrors: 2, from: progress(2_008, 3) })).toEqual({ ...none } as never);
});

test("an import that continues counts on from the row after those that are done", async () => {
  const { end, rejected, reports } = await check({ from: progress(1_500, 2) });
  expect({ end, rejected, reports }).toEqual({
    end: "complete",
    rejected: [2_008],
    reports: [[7, progress(2_500, 3)]],
  });
});

test("a stop takes effect after the piece that is read, whose rows count", async () => {
  const stopped = await check({ isStopped: (pieces) => pieces >= 3 });
  expect(stopped).toMatchObject({ end: "stopped", progress: progress(1_200, 2) });
  // Signals arrive between two batches.
  let signal = false;
  setImmediate(() => (signal = true));
  expect((await check({ isStopped: () => signal })).end).toBe("stopped");
});

test("a file without rows is complete, and reports nothing", async () => {
  for (const pieces of [[], [""], ["\n"]])
    expect(await check({ pieces })).toEqual({
      end: "complete",
      progress: NO_PROGRESS,
      rejected: [],
      reports: [],
    });
});
