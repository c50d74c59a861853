import { expect, test } from "bun:test";
import { errorMessage } from "../../src/cli/error-message.ts";

const systemError = (code: string, path?: string) => Object.assign(new Error(`${code}: raw`), { code, path });

test.each([
  ["/srv/pets: permission denied", systemError("EACCES", "/srv/pets")],
  ["no space is left on the device", systemError("ENOSPC")],
  ["EWEIRD: raw", systemError("EWEIRD", "/x")],
  ["first", new Error("first\nsecond\n    at somewhere")],
  ["cannot lock a: a: permission denied", new Error("cannot lock a", { cause: systemError("EACCES", "a") })],
  ["cannot open x: locked", new Error("cannot open x: locked", { cause: new Error("locked") })],
  ["this is a bug in petstore: x is undefined", new TypeError("x is undefined")],
  ["a bare\\u{a}string", "a bare\nstring"],
])("an error is one line: %s", (line, error) => {
  expect(errorMessage(error)).toBe(line);
});
