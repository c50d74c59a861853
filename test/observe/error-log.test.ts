import { expect, spyOn, test } from "bun:test";
import { Overloaded, Unavailable } from "../../src/api/errors.ts";
import { HeaderFields } from "../../src/http1/header-fields.ts";
import { type Request, RequestAborted } from "../../src/http1/index.ts";
import { ErrorLog } from "../../src/observe/error-log.ts";
import { createLog } from "../../src/observe/log.ts";

/** What makes each event. */
const CAUSES: Readonly<Record<string, (errors: ErrorLog) => void>> = {
  "request.failed": (errors) => errors.report("GET /pets", new Error("a bug"), { requestId: "1" }),
  "request.unavailable": (errors) => errors.report("GET /pets", new Unavailable("down"), { requestId: "1" }),
  "server.overloaded": (errors) => errors.report("GET /pets", new Overloaded("busy"), { requestId: "1" }),
  "request.unsupported": (errors) => errors.reportUnsupported(501, "1"),
};

/** How long it takes until there is another event, after 100 of them. */
const NEXT_AFTER_MS: Readonly<Record<string, number>> = { "request.unavailable": 60_000 };

test.each(Object.entries(CAUSES))("of %s there are 100 at once, then a bounded rate", (event, happen) => {
  const nextAfterMs = NEXT_AFTER_MS[event] ?? 100;
  let now = 0;
  using clock = spyOn(performance, "now").mockImplementation(() => now);
  const lines: string[] = [];
  const errors = new ErrorLog(createLog({ format: "json", write: (line) => lines.push(line) }));
  const logged = () => lines.splice(0).map((line) => JSON.parse(line));
  for (let i = 0; i < 250; i++) happen(errors);
  expect(logged().map((line) => [line.event, line.suppressed])).toEqual(
    Array.from({ length: 100 }, () => [event, 0]),
  );
  now = nextAfterMs * 9.5;
  for (let i = 0; i < 250; i++) happen(errors);
  expect(logged().map(({ suppressed }) => suppressed)).toEqual([150, ...Array.from({ length: 8 }, () => 0)]);
  expect(clock).toHaveBeenCalled();
});

test("after 503 responses of one reason, another reason is logged at once", () => {
  let now = 0;
  using clock = spyOn(performance, "now").mockImplementation(() => now);
  const lines: string[] = [];
  const errors = new ErrorLog(createLog({ format: "json", write: (line) => lines.push(line) }));
  for (const reason of ["full", "full", "locked"]) {
    for (let i = 0; i < 150; i++) errors.report("GET /pets", new Unavailable(reason), { requestId: "1" });
    now += 10_000;
  }
  const logged = lines.map((line) => JSON.parse(line));
  expect(logged.map(({ reason }) => reason).filter((reason) => reason === "locked")).toHaveLength(100);
  expect(logged[100]).toMatchObject({ reason: "locked", suppressed: 200 });
  expect(clock).toHaveBeenCalled();
});

test("an event has the trace of its request, and the messages of the first four causes, each once", () => {
  const lines: string[] = [];
  const errors = new ErrorLog(createLog({ format: "json", write: (line) => lines.push(line) }));
  const chain = ["busy: 4", "3", "2", "disk 2", "1", "down"].reduce<Error | undefined>(
    (cause, message) => new Error(message, { cause }),
    undefined,
  );
  const traceId = "4bf92f3577b34da6a3ce929d0e0e4736";
  const headers = HeaderFields.parse(`traceparent: 00-${traceId}-00f067aa0ba902b7-01\r\n`);
  const request = { headers } as Request;
  errors.report("GET /pets", new Unavailable("the database is down", { cause: chain }), {
    requestId: "1",
    request,
  });
  errors.report("GET /pets", new RequestAborted(), { requestId: "2", request });
  errors.reportUnsupported(400, "3");
  expect(lines.map((line) => JSON.parse(line))).toMatchObject([
    {
      requestId: "1",
      traceId,
      where: "GET /pets",
      reason: "the database is down: 1: disk 2: 3",
      suppressed: 0,
    },
  ]);
});
