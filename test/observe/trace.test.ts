import { expect, test } from "bun:test";
import { traceContextOf } from "../../src/observe/trace.ts";
import { HeaderFields } from "../../src/http1/header-fields.ts";

const TRACE = "4bf92f3577b34da6a3ce929d0e0e4736";
const PARENT = "00f067aa0ba902b7";

function traceIdIn(...values: string[]): string | undefined {
  const headers = HeaderFields.parse(values.map((value) => `traceparent: ${value}\r\n`).join(""));
  if (typeof headers === "number") throw new Error(`${headers}`);
  return traceContextOf({ headers })?.traceId;
}

test.each([
  `00-${TRACE}-${PARENT}-01`,
  `cc-${TRACE}-${PARENT}-00`,
  `01-${TRACE}-${PARENT}-01-what-comes-later`,
])("%s has a trace", (value) => expect(traceIdIn(value)).toBe(TRACE));

test.each([
  [[""]],
  [[`ff-${TRACE}-${PARENT}-01`]],
  [[`00-${"0".repeat(32)}-${PARENT}-01`]],
  [[`00-${TRACE}-${"0".repeat(16)}-01`]],
  [[`00-${TRACE.toUpperCase()}-${PARENT}-01`]],
  [[`00-${TRACE}-${PARENT}-01-more`]],
  [[`00-${TRACE}-${PARENT}`]],
  [[`01-${TRACE}-${PARENT}-01more`]],
  [[`00-${TRACE}-${PARENT}-01`, `00-${TRACE}-${PARENT}-01`]],
])("%j has none", (values) => expect(traceIdIn(...values)).toBeUndefined());
