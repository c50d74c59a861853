import { expect, spyOn, test } from "bun:test";
import { join } from "node:path";
import { scheduler, type ScheduledTimer } from "../../src/runtime/scheduler.ts";
import { WEBHOOK_SECRET } from "../../trials/harness/webhook-receiver.ts";
import { bearer } from "../bearer.ts";
import { cleanUpAfterAll, cliDirectory, InProcessCli } from "../cli/cli.ts";

cleanUpAfterAll();

/** Records the timers of the scheduler, each with the line of src that started it. */
function recordTimers() {
  const left = new Map<object, string>();
  const record =
    (start: typeof scheduler.setTimeout, repeats: boolean): typeof start =>
    (work, ms) => {
      const lines = new Error().stack?.split("\n") ?? [];
      const caller =
        lines.find((line) => /\/src\/(?!runtime\/(?:scheduler|repeat|timeout))/.test(line)) ??
        lines.join("\n");
      const run = () => {
        if (!repeats) left.delete(token);
        work();
      };
      const timer = start(run, ms);
      const token: ScheduledTimer = {
        close() {
          left.delete(token);
          timer.close();
        },
        unref: () => timer.unref(),
      };
      left.set(token, caller.trim());
      return token;
    };
  const { setTimeout, setInterval } = scheduler;
  const spies = [
    spyOn(scheduler, "setTimeout").mockImplementation(record(setTimeout, false)),
    spyOn(scheduler, "setInterval").mockImplementation(record(setInterval, true)),
  ];
  return { left, [Symbol.dispose]: () => spies.forEach((spy) => spy.mockRestore()) };
}

test("every timer of a server ends with it", async () => {
  using timers = recordTimers();
  const cli = new InProcessCli();
  const destinations = ["--webhook-url", "http://127.0.0.1:1/", "--otlp-url", "http://127.0.0.1:1/v1/traces"];
  const log = ["--access-log", join(cliDirectory(), "access.log")];
  const server = await cli.serve([...destinations, ...log], { PETSTORE_WEBHOOK_SECRET: WEBHOOK_SECRET });
  const headers = bearer(server.secret);
  expect((await fetch(`${server.url}/pets`, { headers })).status).toBe(200);
  expect(new Set(timers.left.values()).size).toBeGreaterThan(5);
  expect((await server.stop()).code).toBe(0);
  expect([...timers.left.values()]).toEqual([]);
});
