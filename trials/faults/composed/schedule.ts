import { Random } from "../../harness/random.ts";

export const SERVERS = 3;
/** The times of faults, in milliseconds since the first request. */
const EARLIEST = 800;
const FIRST_FAULT = [1_000, 3_000] as const;
const LAST_FAULT = 8_000;
const MAX_DRAWS = 50;
/** How long a restore and what belongs to it takes at most, beside faults of the database. */
const RESTORE_MS = 8_000;
/** The steps of clocks: seconds, hours and weeks. */
const CLOCK_STEPS_S = [10, -60, 10_000, -10_000, 3_000_000] as const;
/** Further back than the webhook tries to deliver an entry. */
const DAYS_BEHIND_S = -400_000;

export type FaultName = keyof typeof CATALOGUE;

/** A fault of a part of the deployment. The catalogue describes each of its moments. */
export interface Fault {
  readonly name: FaultName;
  /** The number of the server, for faults of servers. */
  readonly server: number;
  /** How far a clock is set forward, for faults of clocks. A negative number sets it back. */
  readonly aheadS: number;
  /** The moments in milliseconds since the first request, in ascending order. */
  readonly moments: readonly number[];
}

/** All properties of a run that the seed determines before it begins. */
export interface Schedule {
  readonly seed: number;
  readonly faults: readonly Fault[];
  /** Whether the URL of the database names the standby before the primary. */
  readonly namesStandbyFirst: boolean;
}

/** A part that a fault occupies. Two faults of one part never overlap. */
interface Occupancy {
  readonly part: string;
  readonly from: number;
  readonly until: number;
}

interface CatalogueEntry {
  /** How often the fault is drawn, relative to the others. */
  readonly weight: number;
  /** How far a clock is set forward; by default it is drawn. */
  readonly aheadS?: number;
  /** A description of each moment, for the list of faults. */
  readonly steps: (fault: Pick<Fault, "server" | "aheadS">) => readonly string[];
  readonly draw: (random: Random, at: number) => readonly number[];
  readonly parts: (server: number, moments: readonly number[]) => readonly Occupancy[];
}

const lasting = (min: number, max: number) => (random: Random, at: number) => [
  at,
  at + random.between(min, max),
];

/** Makes pauses with gaps of about the same length. */
const flapping = (min: number, max: number) => (random: Random, at: number) => {
  const moments: number[] = [];
  for (let pause = 3 + random.below(4), time = at; pause > 0; pause--) {
    const end = time + random.between(min, max);
    moments.push(time, end);
    time = end + random.between(min, max);
  }
  return moments;
};

const occupies = (part: string) => (server: number, moments: readonly number[]) => [
  { part: part === "server" ? `server ${server}` : part, from: moments[0] ?? 0, until: moments.at(-1) ?? 0 },
];

/**
 * A fault of the clocks of all servers or of one, which does not disturb them. PostgreSQL has a clock of
 * its own.
 */
const clock = (whose: (server: number) => string) => ({
  weight: 3,
  steps: ({ server, aheadS }: Pick<Fault, "server" | "aheadS">) => {
    const direction = aheadS > 0 ? "forward" : "back";
    return [
      `the clock of ${whose(server)} is set ${Math.abs(aheadS)} s ${direction}`,
      `the clock of ${whose(server)} is set right`,
    ];
  },
  draw: lasting(1_500, 6_000),
  parts: occupies("clocks"),
});

const inTurn = (first: string, second: string) => () => [first, second];

/**
 * A fault after which the lost primary comes back some time after the promotion, without knowing that it was replaced.
 */
const promotion = (loss: string, back: string, minLostMs: number) => ({
  weight: 6,
  steps: () => [`the primary is ${loss}`, "the standby is promoted", `the replaced primary is ${back}`],
  draw: (random: Random, at: number) => {
    const promotedAt = at + random.between(minLostMs, minLostMs + 1_500);
    return [at, promotedAt, promotedAt + random.between(200, 2_000)];
  },
  parts: (_server: number, [lostAt = 0, promotedAt = 0, backAt = 0]: readonly number[]) => [
    { part: "primary", from: lostAt, until: promotedAt + 300 },
    { part: "standby", from: lostAt, until: Infinity },
    { part: "replaced primary", from: lostAt, until: backAt },
  ],
});

/**
 * The faults. The moments of a fault alternate between its two steps; a promotion has three. Servers need 2 s to notice
 * that a database is frozen, so a frozen primary stays frozen for longer before it is replaced.
 */
export const CATALOGUE = {
  "server-killed": {
    weight: 3,
    steps: ({ server }) => [`server ${server} is killed`, `server ${server} is started`],
    // The start is the moment that matters.
    draw: (random, at) => [Math.max(EARLIEST, at - random.between(100, 2_000)), at],
    parts: occupies("server"),
  },
  "server-frozen": {
    weight: 2,
    steps: ({ server }) => [`server ${server} is frozen`, `server ${server} continues`],
    draw: lasting(300, 4_000),
    parts: occupies("server"),
  },
  // The pause is longer than a server uses what it has cached. Clients send requests to it meanwhile.
  "server-paused": {
    weight: 3,
    steps: ({ server }) => [`server ${server} is paused`, `server ${server} goes on`],
    draw: lasting(3_000, 5_000),
    parts: occupies("server"),
  },
  "server-restarted": {
    weight: 4,
    steps: ({ server }) => [`server ${server} is stopped and started`],
    draw: (_random, at) => [at],
    parts: (server, [at = 0]) => [{ part: `server ${server}`, from: at, until: at + 2_000 }],
  },
  // They start while the restore runs, and what they acknowledge is not lost.
  "servers-restored": {
    weight: 6,
    steps: () => ["all servers are stopped, and started again during a restore of the last backup"],
    draw: (_random, at) => [at],
    parts: (_server, [at = 0]) =>
      Array.from({ length: SERVERS }, (_, i) => ({
        part: `server ${i + 1}`,
        from: at,
        until: at + RESTORE_MS,
      })),
  },
  "primary-frozen": {
    weight: 3,
    steps: inTurn("the primary is frozen", "the primary continues"),
    draw: lasting(300, 6_000),
    parts: occupies("primary"),
  },
  "primary-killed": {
    weight: 2,
    steps: inTurn("the primary is killed", "the primary is started"),
    draw: lasting(200, 3_000),
    parts: occupies("primary"),
  },
  "primary-flapping": {
    weight: 1,
    steps: inTurn("the primary pauses", "the primary continues"),
    draw: flapping(100, 900),
    parts: occupies("primary"),
  },
  "promotion-killed": promotion("killed", "started", 300),
  "promotion-frozen": promotion("frozen", "continued", 2_500),
  // In such a run the primary never waits for the standby, which may lack the last writes.
  "promotion-asynchronous": promotion("killed", "started", 300),
  "standby-frozen": {
    weight: 2,
    steps: inTurn("the standby is frozen", "the standby continues"),
    draw: lasting(300, 4_000),
    parts: occupies("standby"),
  },
  "standby-killed": {
    weight: 1,
    steps: inTurn("the standby is killed", "the standby is started"),
    draw: lasting(300, 4_000),
    parts: occupies("standby"),
  },
  // Existing connections are ended, so that the servers need new ones.
  "certificate-expired": {
    weight: 2,
    steps: inTurn("the certificate of PostgreSQL has expired", "the certificate is valid again"),
    draw: lasting(500, 5_000),
    parts: occupies("primary"),
  },
  "certificate-untrusted": {
    weight: 2,
    steps: inTurn("PostgreSQL has a certificate of another authority", "the certificate is valid again"),
    draw: lasting(500, 5_000),
    parts: occupies("primary"),
  },
  "clock-set": clock((server) => `server ${server}`),
  "clocks-set": clock(() => "all servers"),
  // What the server stores seems to be old to the others.
  "clock-behind": { ...clock((server) => `server ${server}`), weight: 4, aheadS: DAYS_BEHIND_S },
} as const satisfies Record<string, CatalogueEntry>;

const ENTRIES: ReadonlyMap<string, CatalogueEntry> = new Map(Object.entries(CATALOGUE));
const NAMES = Object.keys(CATALOGUE) as FaultName[];
const TICKETS = NAMES.flatMap((name) => Array.from({ length: CATALOGUE[name].weight }, () => name));
const isPromotion = (name: FaultName) => name.startsWith("promotion");

function entryOf({ name }: Pick<Fault, "name">): CatalogueEntry {
  return ENTRIES.get(name) ?? CATALOGUE[name];
}

/** The faults that are likely to follow a fault: starts of servers, and failures of the other database. */
const FOLLOWERS: readonly (readonly [RegExp, readonly FaultName[]])[] = [
  [/^promotion/, ["primary-frozen", "primary-killed", "server-killed", "server-restarted", "server-paused"]],
  [/^servers/, ["primary-frozen", "primary-killed", "promotion-killed", "standby-frozen"]],
  [/^primary/, ["server-killed", "server-restarted", "standby-frozen", "promotion-killed"]],
  [/^standby/, ["primary-killed", "primary-frozen", "server-killed"]],
  [/^certificate/, ["server-killed", "server-restarted", "primary-killed", "promotion-killed", "clock-set"]],
  [/^clock/, ["server-killed", "server-restarted", "promotion-killed", "certificate-expired"]],
];

/**
 * Draws two to four faults. Most begin during another one or within a second of its end, because promises break there.
 */
export function drawSchedule(seed: number): Schedule {
  const random = new Random(seed);
  const faults: Fault[] = [];
  const count = random.pick([2, 3, 3, 4]);
  for (let attempt = 0; faults.length < count && attempt < MAX_DRAWS; attempt++) {
    const followers = FOLLOWERS.find(([pattern]) => pattern.test(faults.at(-1)?.name ?? ""))?.[1];
    const names = followers && !random.chance(3) ? followers : TICKETS;
    const name = names[random.below(names.length)];
    const fault = name && drawFault(random, name, faults);
    if (fault) faults.push(fault);
  }
  const byTime = faults.toSorted((a, b) => (a.moments[0] ?? 0) - (b.moments[0] ?? 0));
  return { seed, faults: byTime, namesStandbyFirst: random.chance(2) };
}

/** Draws a fault. Returns undefined if it is incompatible with the others. */
function drawFault(random: Random, name: FaultName, earlier: readonly Fault[]): Fault | undefined {
  const { draw, aheadS = random.pick(CLOCK_STEPS_S) } = entryOf({ name });
  const moments = draw(random, drawMoment(random, earlier.at(-1)));
  const fault = { name, server: 1 + random.below(SERVERS), aheadS, moments };
  return earlier.every((other) => canGoTogether(fault, other)) ? fault : undefined;
}

function drawMoment(random: Random, previous: Fault | undefined): number {
  if (previous === undefined) return random.between(...FIRST_FAULT);
  if (random.chance(4)) return random.between(FIRST_FAULT[0], LAST_FAULT);
  const { moments } = previous;
  const from = isPromotion(previous.name) ? moments[1] : moments[0];
  return Math.min(LAST_FAULT, random.between(from ?? 0, (moments.at(-1) ?? 0) + 1_000));
}

function canGoTogether(fault: Fault, other: Fault): boolean {
  const partsOf = (each: Fault) => entryOf(each).parts(each.server, each.moments);
  return partsOf(fault).every(({ part, from, until }) =>
    partsOf(other).every((taken) => taken.part !== part || from > taken.until || until < taken.from),
  );
}

/** All steps of the faults, in the order of time. */
export function stepsOf({ faults }: Pick<Schedule, "faults">) {
  const steps = faults.flatMap((fault) => {
    const texts = entryOf(fault).steps(fault);
    return fault.moments.map((at, index) => ({ fault, index, at, text: texts[index % texts.length] ?? "" }));
  });
  return steps.toSorted((a, b) => a.at - b.at);
}

/** Describes a schedule, such as “2.1 s the primary is killed”, separated by commas. */
export function scheduleText(schedule: Schedule): string {
  return stepsOf(schedule)
    .map(({ at, text }) => `${(at / 1_000).toFixed(1)} s ${text}`)
    .join(", ");
}
