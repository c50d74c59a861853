import { expect, onTestFinished, test } from "bun:test";
import { startApp } from "../../../src/app.ts";
import { createClock } from "../../../src/clock.ts";
import { createLog } from "../../../src/observe/log.ts";
import { temporaryDirectory } from "../../../trials/harness/cleanup.ts";
import { postgresUrl } from "../../../trials/harness/postgres.ts";
import { InProcessCli } from "../../cli/cli.ts";
import { configIn } from "../../service.ts";
import { until } from "../../timing.ts";

test("a server whose clock is an hour behind that of PostgreSQL says so, in the list of servers too", async () => {
  const databaseUrl = await postgresUrl();
  const lines: string[] = [];
  const log = createLog({ format: "json", write: (line) => lines.push(line) });
  const steady = createClock({ onStep: () => {} });
  const clock = { stepMs: 0, steadyNow: () => steady.steadyNow(), now: () => steady.now() - 3_600_000 };
  const app = await startApp(configIn(temporaryDirectory("clock"), { databaseUrl }), { clock, log });
  onTestFinished(() => app.close());
  const command = ["servers", "list", "--database-url", databaseUrl];
  const list = () => new InProcessCli().run(command, {}, { clock: createClock({ onStep: () => {} }) });
  const remark = /:\d+: its clock is 3,600 s behind that of PostgreSQL; synchronize both with NTP\.\n/;
  await until(async () => remark.test((await list()).out), 10_000);
  expect(lines.filter((line) => line.includes('"clock.differs"'))).toHaveLength(1);
  expect((app.metrics.clockAheadMs ?? 0) / 1_000).toBeCloseTo(-3_600, 0);
}, 60_000);
