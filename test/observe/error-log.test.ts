import { expect, spyOn, test } from "bun:test";
import { Overloaded, Unavailable } from "../../src/api/errors.ts";
import { ErrorLog } from "../../src/observe/error-log.ts";
import { createLog } from "../../src/observe/log.ts";

/** What makes each event. */
const CAUSES: Readonly<Record<string, (errors: ErrorLog) => void>> = {
  "request.failed": (errors) => errors.report("GET /pets", new Error("a bug"), { requestId: "1" }),
  "request.unavailable": (errors) => errors.report("GET /pets", new Unavailable("down"), { requestId: "1" }),
  "server.overloaded": (errors) => errors.report("GET /pets", new Overloaded("busy"), { requestId: "1" }),
  "request.unsupported": (errors) => errors.reportUnsupported(501, "1"),
};

test.each(Object.entries(CAUSES))("of %s there are 100 at once, then ten a second", (event, happen) => {
  let now = 0;
  using clock = spyOn(performance, "now").mockImplementation(() => now);
  const lines: string[] = [];
  const errors = new ErrorLog(createLog({ format: "json", write: (line) => lines.push(line) }));
  const logged = () => lines.splice(0).map((line) => JSON.parse(line));
  for (let i = 0; i < 250; i++) happen(errors);
  expect(logged().map((line) => [line.event, line.suppressed])).toEqual(
    Array.from({ length: 100 }, () => [event, 0]),
  );
  now = 1_000;
  for (let i = 0; i < 250; i++) happen(errors);
  expect(logged().map(({ suppressed }) => suppressed)).toEqual([150, ...Array.from({ length: 9 }, () => 0)]);
  expect(clock).toHaveBeenCalled();
});
