import { expect, test } from "bun:test";
import { errorMessage } from "../../src/cli/error-message.ts";

const systemError = (code: string, path?: string) => Object.assign(new Error(`${code}: raw`), { code, path });

test.each([
  ["/srv/pets: permission denied", systemError("EACCES", "/srv/pets")],
  ["no space is left on the device", systemError("ENOSPC")],
  [
    "cannot write x: the disk quota is used up",
    new Error("cannot write x", { cause: systemError("EDQUOT") }),
  ],
  ["EWEIRD: raw", systemError("EWEIRD", "/x")],
  ["first", new Error("first\nsecond\n    at somewhere")],
  ["cannot lock a: a: permission denied", new Error("cannot lock a", { cause: systemError("EACCES", "a") })],
  ["cannot open x: locked", new Error("cannot open x: locked", { cause: new Error("locked") })],
  ["this is a bug in petstore: x is undefined", new TypeError("x is undefined")],
  ["a bare\\u{a}string", "a bare\nstring"],
  ["cannot reach postgres://…@h", new Error("cannot reach postgres://user:s3cret@h")],
])("an error is one line: %s", (line, error) => {
  expect(errorMessage(error)).toBe(line);
});

test("an error that causes itself is one line too", () => {
  const first = new Error("first");
  const second = new Error("second", { cause: first });
  first.cause = second;
  expect(errorMessage(first)).toMatch(/^first: second: first/);
});
