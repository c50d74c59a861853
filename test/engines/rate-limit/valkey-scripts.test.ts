import { afterAll, expect, test } from "bun:test";
import * as fc from "fast-check";
import { type BanRules, DEFAULT_BAN } from "../../../src/domain/rate-limit.ts";
import { parseServers, ValkeyConnection } from "../../../src/rate-limit/valkey/connection.ts";
import type { KeyReport, RequestGroup } from "../../../src/rate-limit/valkey/script.ts";
import { startValkey } from "../../../trials/harness/valkey.ts";
import { ValkeyModel } from "../../../trials/simulation/valkey.ts";
import { PATIENT } from "../../rate-limit/open-valkey.ts";
import { key } from "../../subjects.ts";
import { TestClock } from "../../test-clock.ts";

const server = await startValkey();
afterAll(() => server.stop());

const connect = (prefix: string, ban: BanRules, testClock: TestClock) =>
  ValkeyConnection.open(
    { servers: parseServers([server.url]), prefix, ban: () => ban, testClock, ...PATIENT },
    key(1),
  );

interface Step {
  readonly groups?: readonly RequestGroup[];
  readonly report?: KeyReport;
  /** After the requests and the report. A negative number sets the clock back. */
  readonly advanceMs?: number;
}

const subject = fc.constantFrom(key(1), key(2));
const limits = fc.record({
  perMinute: fc.integer({ min: 1, max: 5 }),
  perDay: fc.integer({ min: 1, max: 12 }),
});
const times = (count: number) => Array.from({ length: count });
const group = fc.record({ subject, limits, requests: fc.integer({ min: 1, max: 20 }).map(times) });
/** Scripts fail where something begins or ends, so most steps end at such a time. */
const ms = fc.oneof(
  { weight: 3, arbitrary: fc.constantFrom(0, 1, 999, 1_000, 1_001, 5_000, 59_999, 60_000, 60_001) },
  { weight: 2, arbitrary: fc.constantFrom(299_999, 300_000, 86_339_999, 86_340_000, 86_399_999, 86_400_000) },
  { weight: 1, arbitrary: fc.nat(200_000_000) },
);
const backwards = ms.map((each) => -each);
const window = fc.record({ openedAgoMs: ms, used: fc.nat(3) });
const unbannedAgoMs = fc.option(ms, { nil: undefined });
const report = fc.record({ subject, minute: window, day: window, unbannedAgoMs });
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ groups: fc.array(group, { minLength: 1, maxLength: 6 }) }) },
  { weight: 3, arbitrary: fc.record({ advanceMs: fc.oneof({ weight: 3, arbitrary: ms }, backwards) }) },
  { weight: 1, arbitrary: fc.record({ report }) },
);
const rules: fc.Arbitrary<BanRules> = fc.record({
  strikes: fc.integer({ min: 1, max: 4 }),
  graceMs: fc.constantFrom(0, 1_000, 1_500),
  lengthMs: fc.constantFrom(1, 5_000, 300_000),
  maxLengthMs: fc.constantFrom(300_000, 900_000),
});

/** Both windows close, and an unban and a ban come, at the same time: random histories seldom have that. */
function atTheSameTime(): [BanRules, Step[]] {
  const group = { subject: key(1), limits: { perMinute: 1, perDay: 2 }, requests: times(1) };
  const nothing = { openedAgoMs: 0, used: 0 };
  const report = { subject: key(1), minute: nothing, day: nothing, unbannedAgoMs: 0 };
  return [
    DEFAULT_BAN,
    [
      { groups: [group], advanceMs: 86_340_000 },
      ...Array.from({ length: 4 }, () => ({ groups: [group], advanceMs: 1_001 })),
      { groups: [{ ...group, requests: times(10) }] },
      { report, advanceMs: -500 },
      { groups: [group] },
    ],
  ];
}

test("the script decides, reports and reads as the rules of the domain do, in random histories", async () => {
  let run = 0;
  await fc.assert(
    fc.asyncProperty(rules, fc.array(step, { maxLength: 40, size: "max" }), async (rules, steps) => {
      const clock = new TestClock();
      const link = await connect(`alike:${run++}:`, rules, clock);
      const model = new ValkeyModel(() => clock.now(), rules);
      const play = async (each: ValkeyConnection | ValkeyModel, { groups = [], report }: Step) => [
        await each.decide(groups, report && [report]),
        await each.quota(key(1)),
      ];
      try {
        for (const next of steps) {
          expect(await play(link, next)).toEqual(await play(model, next));
          clock.advance(next.advanceMs ?? 0);
        }
      } finally {
        link.close();
      }
    }),
    { numRuns: 80, examples: [atTheSameTime()] },
  );
}, 120_000);
