import { describe, expect, test } from "bun:test";
import type {
  Action,
  Disturbance,
  Ending,
  History,
  Operation,
} from "../../trials/faults/composed/history.ts";
import { judge, type RULES } from "../../trials/faults/composed/judge.ts";
import { CATALOGUE, drawSchedule, scheduleText, stepsOf } from "../../trials/faults/composed/schedule.ts";

describe("the schedule of a seed", () => {
  const schedules = Array.from({ length: 1_000 }, (_, i) => drawSchedule(i + 1));

  test("is the same each time, and another for another seed", () => {
    expect(drawSchedule(7)).toEqual(drawSchedule(7));
    expect(new Set(schedules.map(scheduleText)).size).toBeGreaterThan(990);
  });

  test("has two to four faults of the catalogue, which are over within 16 s", () => {
    for (const schedule of schedules) {
      expect(schedule.faults.length).toBeWithin(2, 5);
      expect(stepsOf(schedule).at(-1)?.at).toBeLessThan(16_000);
    }
    const drawn = new Set(schedules.flatMap(({ faults }) => faults.map(({ name }) => name)));
    expect([...drawn].toSorted()).toEqual(Object.keys(CATALOGUE).toSorted() as (keyof typeof CATALOGUE)[]);
  });

  test("pauses a server, restores a backup, promotes an asynchronous standby and sets a clock back by days in the first 30", () => {
    const faults = schedules.slice(0, 30).flatMap((schedule) => schedule.faults);
    for (const name of [
      "server-paused",
      "servers-restored",
      "promotion-asynchronous",
      "clock-behind",
    ] as const)
      expect(faults.filter((fault) => fault.name === name).length).toBeGreaterThanOrEqual(2);
    const behind = schedules.flatMap((schedule) =>
      schedule.faults.filter(({ name }) => name === "clock-behind"),
    );
    expect(Math.max(...behind.map(({ aheadS }) => aheadS))).toBeLessThan(-3 * 86_400);
  });

  test("sets clocks forward and back, of one server or of all", () => {
    const steps = schedules.flatMap(stepsOf).filter(({ fault }) => fault.name.startsWith("clock"));
    const texts = new Set(
      steps.map(({ text }) => text.replace(/server \d/, "a server").replace(/\d+ s /, "")),
    );
    expect([...texts].toSorted()).toEqual([
      "the clock of a server is set back",
      "the clock of a server is set forward",
      "the clock of a server is set right",
      "the clock of all servers is set back",
      "the clock of all servers is set forward",
      "the clock of all servers is set right",
    ]);
  });

  test("promotes once at most, and does nothing to the standby afterwards", () => {
    for (const { faults } of schedules) {
      const promotions = faults.filter(({ name }) => name.startsWith("promotion"));
      expect(promotions.length).toBeLessThan(2);
      const [lostAt = Infinity] = promotions[0]?.moments ?? [];
      for (const { name, moments } of faults)
        if (name.startsWith("standby")) expect(moments.at(-1)).toBeLessThan(lostAt);
    }
  });
});

/** An operation on server 1 by key A, 10 ms long. */
function operation(at: number, status: number, action: Action, other: Partial<Operation> = {}): Operation {
  const times = { startedAt: at, sentAt: at, endedAt: at + 10 };
  return { server: 1, credential: "A", ...times, status, action, ...other };
}

const REX = { id: 1, name: "Rex", isOrdered: false };
const ENDING: Ending = { server: 1, pets: [REX], orders: [], keys: [] };
const GOOD: History = {
  operations: [],
  limits: {},
  expiries: {},
  disturbances: [],
  clocks: [],
  endings: [ENDING],
  undelivered: [],
  mayBeLostUntil: undefined,
  failures: [],
};
const during = (part: Disturbance["part"], from: number, until: number, number?: number): Disturbance => {
  return { part, what: "is frozen", from, until, ...(number !== undefined && { number }) };
};

const create = (at: number, status = 201, other: Partial<Operation> = {}) =>
  operation(at, status, { kind: "create", name: "Rex", ...(status === 201 && { id: 1 }) }, other);
const idempotent = (at: number, id: number | undefined, status = 201) =>
  operation(at, status, {
    kind: "create",
    name: "Rex",
    idempotencyKey: "k",
    ...(id !== undefined && { id }),
  });
const order = (at: number, id: number) => operation(at, 201, { kind: "order", petId: 1, id });
const read = (at: number, pets: readonly (typeof REX)[], other: Partial<Operation> = {}) =>
  operation(at, 200, { kind: "read", after: 0, upTo: 1, pets }, other);
const change = (at: number, what: "create" | "disable" | "revoke", other: Partial<Operation> = {}) =>
  operation(at, 200, { kind: "change", change: what, of: "A" }, { credential: "root", ...other });
const use = (at: number, status = 200, other: Partial<Operation> = {}) =>
  operation(at, status, { kind: "use", what: "get" }, other);
const inspect = (at: number, state: string) => operation(at, 200, { kind: "inspect", of: "A", state });
const uses = (count: number, status = 200) => Array.from({ length: count }, (_, i) => use(i, status));
const history = (operations: readonly Operation[], other: Partial<History> = {}): History => {
  return { ...GOOD, operations, ...other };
};

const ORDERED: Ending = { ...ENDING, pets: [{ ...REX, isOrdered: true }], orders: [{ id: 5, petId: 1 }] };
const WITHOUT_PETS: Ending = { ...ENDING, pets: [] };
const TWO: Ending = { ...ENDING, pets: [REX, { ...REX, id: 2 }] };

const LIMITED = { limits: { A: 30 } };
const EXPIRING = { expiries: { A: 5_000 } };
/** The clock of server 1 is set 10 s forward, and set right. */
const AHEAD = {
  ...EXPIRING,
  clocks: [
    { server: 1, from: 1_000, until: 1_100, aheadMs: undefined },
    { server: 1, from: 1_100, until: 3_000, aheadMs: 10_000 },
    { server: 1, from: 3_000, until: 3_100, aheadMs: undefined },
  ],
};

type Cases = Readonly<Record<string, History>>;

/** Another server holds the lock. */
const LOCKED = { reason: "PostgreSQL: canceling statement due to lock timeout" };

const BAD: Readonly<Record<keyof typeof RULES, Cases>> = {
  lost: {
    "an acknowledged pet is missing at the end": history([create(0)], { endings: [WITHOUT_PETS] }),
    "one server does not show it": history([create(0)], {
      endings: [ENDING, { ...WITHOUT_PETS, server: 2 }],
    }),
    "another pet has its identifier": history([create(0)], {
      endings: [{ ...ENDING, pets: [{ ...REX, name: "Tom" }] }],
    }),
    "an acknowledged order is missing": history([create(0), order(20, 5)], {
      endings: [{ ...ORDERED, orders: [] }],
    }),
    "its pet is available": history([create(0), order(20, 5)], { endings: [{ ...ORDERED, pets: [REX] }] }),
  },
  doubled: {
    "an idempotent create was done twice": history([idempotent(0, undefined, 503), idempotent(50, 1)], {
      endings: [TWO],
      disturbances: [during("primary", 0, 20)],
    }),
    "a repeat got another identifier": history([idempotent(0, 1), idempotent(50, 2)]),
    "a create was done more often than it was sent": history([create(0)], { endings: [TWO] }),
    "a rejected create was done": history([create(0, 409, { code: "idempotency_conflict" })]),
    "an identifier was given twice": history([
      create(0),
      operation(50, 201, { kind: "create", name: "Tom", id: 1 }),
    ]),
    "a pet was ordered twice": history([create(0), order(20, 5), order(40, 6)], { endings: [ORDERED] }),
    "a pet has two orders at the end": history([create(0), order(20, 5)], {
      endings: [{ ...ORDERED, orders: [...ORDERED.orders, { id: 6, petId: 1 }] }],
    }),
  },
  stale: {
    "a later read does not show a pet": history([create(0), read(20, [])]),
    "nor on another server": history([create(0), read(20, [], { server: 2 })]),
    "a later read does not show an order": history([create(0), order(20, 5), read(40, [REX])], {
      endings: [ORDERED],
    }),
    "an order does not find its pet": history([
      create(0),
      operation(20, 404, { kind: "order", petId: 1 }, { code: "pet_not_found" }),
    ]),
    "a key is active after its revocation": history([
      change(0, "create"),
      change(20, "revoke"),
      inspect(40, "active"),
    ]),
    "a new key is rejected": history([change(0, "create"), use(20, 401)]),
  },
  revoked: {
    "a revoked key is used after a second": history([change(0, "revoke", { server: 2 }), use(1_100)]),
    "on the same server at once": history([change(0, "revoke"), use(100)]),
    "a body arrives after a second": history([
      change(50, "disable", { server: 2 }),
      use(0, 201, { sentAt: 1_200, endedAt: 1_210 }),
    ]),
    "a request without a response was done": history(
      [
        change(0, "revoke", { server: 2 }),
        operation(1_200, 0, { kind: "use", what: "create", name: "Rex" }, { code: "closed" }),
      ],
      { disturbances: [during("server", 1_205, 1_300, 1)] },
    ),
    "after a pause of the server": history([change(0, "revoke", { server: 2 }), use(3_000)], {
      disturbances: [during("server", 100, 2_990, 1)],
    }),
    "after an outage": history([change(0, "revoke", { server: 2 }), use(5_000)], {
      disturbances: [during("primary", 500, 2_000)],
    }),
  },
  limits: {
    "one more than the limit": history(uses(31), { limits: { A: 30 } }),
    "one more when PostgreSQL is switched over": history(uses(31), {
      ...LIMITED,
      disturbances: [{ ...during("promotion", 500, 2_000), what: "switchover" }],
    }),
    "one more that was counted long before PostgreSQL was killed": history(uses(31), {
      ...LIMITED,
      disturbances: [{ ...during("promotion", 1_100, 4_000), what: "killed" }],
    }),
    "a rejection before the limit": history([...uses(28), use(500, 429)], { limits: { A: 30 } }),
  },
  expiry: {
    "a key is used after its expiry": history([use(5_100)], EXPIRING),
    "a key is rejected before its expiry": history([change(0, "create"), use(4_000, 401)], EXPIRING),
    "a key has expired by the clock of the server": history([use(2_000)], AHEAD),
    "and is valid when the clock is right again": history([use(3_200, 401)], AHEAD),
    "and on another server": history([use(2_000, 401, { server: 2 })], AHEAD),
  },
  withoutStandby: {
    "a write is acknowledged while the standby is away": history([create(500)], {
      disturbances: [during("standby", 0, 1_000)],
    }),
  },
  statuses: {
    "500": history([use(0, 500)]),
    "503 without a fault": history([use(0, 503)]),
    "503 long after a fault": history([use(5_000, 503)], { disturbances: [during("primary", 0, 3_000)] }),
    "503 because another server had a fault": history([use(50, 503, { reason: "the pool is down" })], {
      disturbances: [during("server", 0, 3_000, 2)],
    }),
    "503 because of a lock, although no server had a fault": history([use(50, 503, LOCKED)]),
    "no response of a server without a fault": history([use(50, 0)], {
      disturbances: [during("server", 0, 3_000, 2)],
    }),
    "503 while a clock is wrong": history([use(2_000, 503)], AHEAD),
    "503 long after a certificate is valid again": history([use(5_000, 503)], {
      disturbances: [during("certificate", 0, 3_000)],
    }),
    "500 because of a certificate": history([use(1_000, 500)], {
      disturbances: [during("certificate", 0, 3_000)],
    }),
    "401 for a key that nobody changed": history([use(0, 401)]),
    "429 for a key without a limit": history([use(0, 429)]),
    "a conflict of a read": history([read(0, [], { status: 409 })]),
    "a response after 9 s": history([use(0, 200, { endedAt: 9_000 })]),
  },
  undelivered: { "an entry is missing": { ...GOOD, undelivered: ["key.created 7"] } },
  failed: { "a server ends": { ...GOOD, failures: ["server 1 has ended by itself"] } },
};

describe.each(Object.entries(BAD))("%s", (rule, cases) => {
  test.each(Object.entries(cases))("%s", (_, bad) => {
    const broken = judge(bad).map((problem) => problem.slice(0, problem.indexOf(":")));
    expect(broken).toContain(rule);
  });
});

const FINE: Cases = {
  "nothing happens": GOOD,
  "a pet is created, read and ordered": history(
    [create(0), read(20, [REX]), order(40, 5), read(60, [{ ...REX, isOrdered: true }])],
    { endings: [ORDERED] },
  ),
  "a read began before the acknowledgement": history([create(0), read(5, [])]),
  "a create without an Idempotency-Key is repeated after a fault": history([create(0, 503), create(50)], {
    endings: [TWO],
    disturbances: [during("primary", 0, 20)],
  }),
  "a server that is slow holds a lock": history([use(50, 503, LOCKED)], {
    disturbances: [during("server", 0, 3_000, 2)],
  }),
  "an idempotent create is repeated": history(
    [idempotent(0, undefined, 0), idempotent(50, 1), idempotent(90, 1)],
    {
      disturbances: [during("server", 0, 20, 1)],
    },
  ),
  "a revoked key is used within a second": history([change(0, "revoke", { server: 2 }), use(1_000)]),
  "and within a second after an outage": history([change(0, "revoke", { server: 2 }), use(4_400)], {
    disturbances: [during("primary", 500, 2_000)],
  }),
  "a body that began before arrives within a second": history([
    change(50, "revoke", { server: 2 }),
    use(0, 201, { sentAt: 900, endedAt: 910 }),
  ]),
  "a revoked key is rejected": history([change(0, "create"), change(20, "revoke"), use(1_500, 401)]),
  "the limit is reached": history([...uses(30), use(500, 429)], { limits: { A: 30 } }),
  "what PostgreSQL counted within a second before it was killed is allowed again": history(uses(60), {
    ...LIMITED,
    disturbances: [{ ...during("promotion", 500, 4_000), what: "killed" }],
  }),
  "an address that uses many tokens that were revoked": history([
    change(0, "revoke", { server: 2 }),
    operation(1_500, 429, { kind: "use", what: "get" }, { code: "too_many_attempts" }),
  ]),
  "a write is acknowledged when the standby is back": history([create(500, 201, { endedAt: 1_100 })], {
    disturbances: [during("standby", 0, 1_000)],
  }),
  "a key expires by the clock of the server": history(
    [
      change(0, "create"),
      use(1_050),
      use(1_060, 401),
      use(2_000, 401),
      use(2_000, 200, { server: 2 }),
      use(3_200),
    ],
    AHEAD,
  ),
  "the database has an expired certificate": history([use(1_000, 503), use(4_000, 503)], {
    disturbances: [during("certificate", 0, 3_000)],
  }),
  "a revoked key is used within a second after it": history(
    [change(0, "revoke", { server: 2 }), use(4_400)],
    {
      disturbances: [during("certificate", 500, 2_000)],
    },
  ),
  "a server that was frozen is late": history([use(0, 200, { endedAt: 9_000 })], {
    disturbances: [during("server", 0, 4_000, 1)],
  }),
};

test.each(Object.entries(FINE))("no promise is broken: %s", (_, fine) => {
  expect(judge(fine)).toEqual([]);
});
