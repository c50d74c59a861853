import { expect, onTestFinished, test } from "bun:test";
import type { ServerReportStore } from "../../src/domain/ports/servers.ts";
import { NO_ACTIVITY, type StoredReport } from "../../src/domain/servers.ts";
import { ReportingRegister, openRegister } from "../../src/background/server-register.ts";
import { advance, useFakeTimers } from "../fake-timers.ts";
import { TestClock } from "../test-clock.ts";

useFakeTimers();

/** The reports in a database with a clock of its own. */
class MapReports implements ServerReportStore {
  readonly clock = new TestClock(0);
  readonly #reports = new Map<string, { readonly report: string; readonly at: number }>();
  isDown = false;

  async report(id: string, report: string): Promise<readonly StoredReport[]> {
    this.#reports.set(id, { report, at: this.clock.time });
    return (await this.listReports()).filter((each) => each.id !== id);
  }

  async listReports(): Promise<readonly StoredReport[]> {
    if (this.isDown) throw new Error("the database is down");
    return [...this.#reports].map(([id, { report, at }]) => ({ id, report, ageMs: this.clock.time - at }));
  }

  async deleteReports(ids: readonly string[]): Promise<void> {
    for (const id of ids) this.#reports.delete(id);
  }

  clear(): void {
    this.#reports.clear();
  }
}

function setUp() {
  const reports = new MapReports();
  const clock = new TestClock();
  const activityOf = (name: string) => ({ ...NO_ACTIVITY, adminUrl: `http://${name}:8090`, requests: 7 });
  const open = async (id: string, name = id) => {
    clock.advance(1);
    const self = { id, name, version: "1.0.0", startedAt: clock.now() };
    const register = await ReportingRegister.open(self, {
      reports,
      clock,
      activity: () => activityOf(name),
    });
    onTestFinished(() => register.close());
    return register;
  };
  return { reports, clock, open };
}
const idsOf = (servers: readonly { readonly id: string }[]) => servers.map(({ id }) => id);

test("each server learns of the others, and forgets one that stops", async () => {
  const { clock, open } = setUp();
  const [one, other] = [await open("one"), await open("other")];
  await one.report();
  expect([one, other].map((each) => each.list().length)).toEqual([2, 2]);
  expect(one.list()).toMatchObject([
    { id: "one", adminUrl: "http://one:8090", seenAt: clock.now() },
    { id: "other", adminUrl: "http://other:8090", requests: 7, latencies: [] },
  ]);
  await other.close();
  await one.report();
  expect(idsOf(one.list())).toEqual(["one"]);
});

test("a server reports when it starts and then each second, until it stops", async () => {
  const { reports, open } = setUp();
  const one = await open("one");
  const reported = async () => idsOf(await reports.listReports());
  expect(await reported()).toEqual(["one"]);
  for (let second = 0; second < 2; second++) {
    reports.clear();
    await advance(999);
    expect(await reported()).toEqual([]);
    await advance(1);
    expect(await reported()).toEqual(["one"]);
  }
  await one.close();
  await advance(5_000);
  expect(await reported()).toEqual([]);
});

test("a server that was killed is lost after 4 seconds, is not counted, and is forgotten when it starts again", async () => {
  const { reports, clock, open } = setUp();
  const [killed, one] = [await open("killed"), await open("one")];
  reports.clock.advance(4_000);
  await one.report();
  expect([idsOf(one.list()), one.lost()]).toEqual([["killed", "one"], []]);
  reports.clock.advance(1);
  await one.report();
  expect(idsOf(one.list())).toEqual(["one"]);
  expect(one.lost()).toMatchObject([{ id: "killed", requests: 7, seenAt: clock.now() - 4_001 }]);
  const command = openRegister(reports, clock);
  expect([idsOf(await command.list()), idsOf(await command.lost())]).toEqual([["one"], ["killed"]]);
  // It was paused only.
  await killed.report();
  await one.report();
  expect([one.list().length, one.lost()]).toEqual([2, []]);
  reports.clock.advance(4_001);
  await one.report();
  const again = await open("again", "killed");
  await one.report();
  expect([one.list().length, one.lost(), idsOf(await reports.listReports())]).toEqual([
    2,
    [],
    ["one", "again"],
  ]);
  await again.close();
});

test("of the servers that were killed, the last 50 of an hour are listed, and the others are deleted", async () => {
  const { reports, open } = setUp();
  for (let i = 0; i < 60; i++) {
    const { self } = await open(`${i}`);
    reports.clock.advance(self.id === "9" ? 1_000 : 0);
  }
  reports.clock.advance(4_001);
  const one = await open("one");
  expect(idsOf(one.lost()).toSorted()).toEqual(Array.from({ length: 50 }, (_, i) => `${i + 10}`));
  expect(await reports.listReports()).toHaveLength(51);
  reports.clock.advance(3_595_999);
  await one.report();
  expect(one.lost()).toHaveLength(50);
  reports.clock.advance(1);
  await one.report();
  expect([one.lost(), idsOf(await reports.listReports())]).toEqual([[], ["one"]]);
});

test("while the database is down, the list stays as it was; a crash empties it until the next report", async () => {
  const { reports, clock, open } = setUp();
  const [other, one] = [await open("other"), await open("one")];
  const seenAt = clock.now();
  reports.isDown = true;
  reports.clock.advance(3_600_000);
  clock.advance(3_600_000);
  await one.report();
  expect(one.list()).toMatchObject([{ id: "other", seenAt }, { id: "one" }]);
  reports.isDown = false;
  reports.clear();
  await other.report();
  await one.report();
  expect(idsOf(one.list())).toEqual(["other", "one"]);
});

test("a server whose report is not understood is left out; one forged row hides no other and is no link", async () => {
  const { reports, open } = setUp();
  const one = await open("one");
  const report = { id: "x", name: "n", version: "2.0.0", startedAt: 1, ...NO_ACTIVITY };
  const forged: Readonly<Record<string, object>> = {
    newer: { ...report, adminUrl: "https://192.0.2.7:8090", more: true },
    path: { ...report, adminUrl: "http://user:secret@192.0.2.7/latest/meta-data?a=#" },
    script: { ...report, adminUrl: "javascript:alert(1)" },
    off: { ...report, adminUrl: null },
    long: { ...report, adminUrl: `http://${"x".repeat(300)}` },
    lines: { ...report, name: "a\u001b[2J" },
    late: { ...report, startedAt: 8.64e15 + 1 },
    none: { id: "none" },
  };
  for (const [id, each] of Object.entries(forged)) await reports.report(id, JSON.stringify(each));
  await reports.report("text", "not JSON");
  await one.report();
  expect(one.list().map(({ id, adminUrl }) => [id, adminUrl])).toEqual([
    ["newer", "https://192.0.2.7:8090"],
    ["path", "http://192.0.2.7"],
    ["script", undefined],
    ["off", null],
    ["one", "http://one:8090"],
  ]);
});
