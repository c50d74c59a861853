import { afterAll, expect, test } from "bun:test";
import * as fc from "fast-check";
import { type BanRules, DEFAULT_BAN } from "../../../src/domain/ban-rules.ts";
import { NEVER, newQuota } from "../../../src/domain/rate-limit.ts";
import { parseServers, ValkeyConnection } from "../../../src/rate-limit/valkey/connection.ts";
import { messageOf } from "../../../src/runtime/message-of.ts";
import type { KeyHandOver, RequestGroup } from "../../../src/rate-limit/valkey/script.ts";
import { sendToValkey, startValkey } from "../../../trials/harness/valkey.ts";
import { ValkeyModel } from "../../../trials/simulation/valkey.ts";
import { PATIENT } from "../../rate-limit/open-valkey.ts";
import { key } from "../../subjects.ts";
import { TestClock } from "../../test-clock.ts";

const server = await startValkey();
afterAll(() => server.stop());

const connect = (prefix: string, ban: BanRules, testClock: TestClock, url = server.url) =>
  ValkeyConnection.open(
    { servers: parseServers([url]), prefix, ban: () => ban, testClock, ...PATIENT },
    key(1),
  );

test("a user who may not run the script, or write what it writes, gets no connection", async () => {
  for (const forbidden of ["evalsha", "hset"]) {
    const rules = ["on", `>${forbidden}`, "~*", "+@all", `-${forbidden}`];
    await sendToValkey(server.url, "ACL", "SETUSER", "petstore", "reset", ...rules);
    const url = server.url.replace("://", `://petstore:${forbidden}@`);
    const opening = connect("p", DEFAULT_BAN, new TestClock(), url).then(
      () => "opened",
      (error: unknown) => messageOf(error),
    );
    expect(await opening).toMatch(/NOPERM|can't run this command/);
  }
});

interface Step {
  readonly groups?: readonly RequestGroup[];
  readonly handOver?: KeyHandOver;
  /** The time that passes after the requests and what is handed over. A negative number sets the clock back. */
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
function never() {
  return fc.constant(NEVER);
}
const backwards = ms.map((each) => -each);
const HANDED_AT = new TestClock().time;
const ago = ms.map((each) => HANDED_AT - each);
const window = fc.record({
  openedAt: ago,
  used: fc.nat(3),
  graceBeganAt: fc.oneof(ago, never()),
  strikes: fc.nat(3),
});
const handedBan = fc.oneof(
  fc.record({ bannedAt: ago, bannedUntil: ms.map((each) => HANDED_AT + each), lastBanMs: fc.constant(0) }),
  fc.record({
    bannedAt: never(),
    bannedUntil: fc.oneof(ago, never()),
    lastBanMs: fc.constantFrom(0, 300_000),
  }),
);
const handOver = fc
  .record({ subject, minute: window, day: window, ban: handedBan, unbannedAt: fc.oneof(ago, never()) })
  .map(({ subject, minute, day, ban, unbannedAt }) => ({
    subject,
    quota: { minute, day, ...ban },
    unbannedAt,
  }));
const step: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.record({ groups: fc.array(group, { minLength: 1, maxLength: 6 }) }) },
  { weight: 3, arbitrary: fc.record({ advanceMs: fc.oneof({ weight: 3, arbitrary: ms }, backwards) }) },
  { weight: 2, arbitrary: fc.record({ handOver }) },
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
  const handOver = { subject: key(1), quota: newQuota(), unbannedAt: HANDED_AT + 100_000_000 };
  return [
    DEFAULT_BAN,
    [
      { groups: [group], advanceMs: 86_340_000 },
      ...Array.from({ length: 4 }, () => ({ groups: [group], advanceMs: 1_001 })),
      { groups: [{ ...group, requests: times(10) }] },
      { handOver, advanceMs: -500 },
      { groups: [group] },
    ],
  ];
}

test("the script decides, takes over and reads as the rules of the domain do, in random histories", async () => {
  let run = 0;
  await fc.assert(
    fc.asyncProperty(rules, fc.array(step, { maxLength: 40, size: "max" }), async (rules, steps) => {
      const clock = new TestClock();
      const link = await connect(`alike:${run++}:`, rules, clock);
      const model = new ValkeyModel(() => clock.now(), rules);
      const play = async (each: ValkeyConnection | ValkeyModel, { groups = [], handOver }: Step) => [
        await each.decide(groups, handOver && [handOver]),
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
