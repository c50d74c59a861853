import { expect, test } from "bun:test";
import { join } from "node:path";
import { Unavailable } from "../../src/api/errors.ts";
import { failureOf, isBusy, sqliteUnavailable } from "../../src/store/sqlite/errors.ts";

/** An error of SQLite with an extended code, whose low byte is the code. */
const sqliteError = (code: number, message = "disk I/O error") =>
  Object.assign(new Error(message), { name: "SQLiteError", errno: code + 0x300 });
const [BUSY, READONLY, IOERR, CORRUPT, FULL, CANTOPEN] = [5, 8, 10, 11, 13, 14];

test("an error is Unavailable if the same call can succeed later", () => {
  const codes = Array.from({ length: 30 }, (_, code) => code);
  const isTransient = (code: number) => sqliteUnavailable(sqliteError(code)) instanceof Unavailable;
  expect(codes.filter(isTransient)).toEqual([5, 6, 7, 8, 10, 13, 14, 15]);
  expect(codes.filter((code) => isBusy(sqliteError(code)))).toEqual([BUSY]);
  for (const error of [sqliteError(CORRUPT), new Error("another"), undefined])
    expect([sqliteUnavailable(error), isBusy(error)]).toEqual([error, false]);
  const busy = sqliteError(BUSY);
  expect(sqliteUnavailable(busy)).toMatchObject({ message: "SQLite: disk I/O error", cause: busy });
  expect(isBusy(sqliteUnavailable(busy))).toBe(true);
});

test("a failure names the file, and its cause unless the disk is full or read-only", () => {
  const path = "/missing/directory/a.db";
  for (const [error, reason] of [
    [sqliteError(IOERR), "disk I/O error"],
    [sqliteError(CORRUPT, "malformed"), "malformed"],
    [new Error("another"), "another"],
  ] as const) {
    const failure = failureOf("open", path, error);
    expect([failure.message, failure.cause]).toEqual([`cannot open ${path}: ${reason}`, error]);
  }
  const full = failureOf("open", path, sqliteUnavailable(sqliteError(FULL), path));
  expect([full.message, full.cause]).toEqual([`cannot open ${path}: the disk is full`, undefined]);
});

test("a disk with less than 128 KiB is full, and a file system can be read-only, if that explains the error", () => {
  const reason = (code: number, bytes: number, access = "") => {
    const disk = {
      access() {
        if (access !== "") throw Object.assign(new Error(access), { code: access });
      },
      free: () => bytes,
    };
    const { message, cause } = failureOf("open", "/data/a.db", sqliteError(code), disk);
    return [message.slice("cannot open /data/a.db: ".length), cause !== undefined];
  };
  for (const code of [READONLY, IOERR, CANTOPEN])
    expect(reason(code, 131_071)).toEqual(["the disk is full", false]);
  expect(reason(BUSY, 131_071)).toEqual(["disk I/O error", true]);
  expect(reason(IOERR, 131_072)).toEqual(["disk I/O error", true]);
  expect(reason(IOERR, 0, "EROFS")).toEqual(["the file system of /data is read-only", false]);
  expect(reason(IOERR, 0, "EACCES")).toEqual(["disk I/O error", true]);
  const here = join(import.meta.dir, "a.db");
  expect(failureOf("open", here, sqliteError(IOERR)).message).toBe(`cannot open ${here}: disk I/O error`);
});
