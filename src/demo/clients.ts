import type { NewKey } from "../domain/api-keys.ts";
import { type Decision } from "../domain/rate-limit.ts";
import { HOUR_MS, MINUTE_MS } from "../text/time-units.ts";
import type { OperationId } from "../domain/operation-ids.ts";

/** What a client of the demo mostly does. */
type Habit = "browses" | "orders" | "imports";

/** The share of each operation in the requests of a client. */
const HABITS: Readonly<Record<Habit, Readonly<Partial<Record<OperationId, number>>>>> = {
  browses: { listPets: 0.85, getPet: 0.15 },
  orders: { listPets: 0.4, listOrders: 0.15, placeOrder: 0.25, updateOrder: 0.2 },
  imports: { createPet: 0.6, listPets: 0.4 },
};

export function anyOperation(habit: Habit): OperationId {
  let chance = Math.random();
  const shares = Object.entries(HABITS[habit]) as [OperationId, number][];
  return shares.find(([, share]) => (chance -= share) < 0)?.[0] ?? "listPets";
}

/** A client of the demo. Its sample usage, its quotas at the start and its requests follow this description. */
export interface DemoClient {
  /** The API key of the client. */
  readonly key: Omit<NewKey, "createdAt">;
  readonly createdDaysAgo: number;
  readonly habit: Habit;
  /** The requests per second, at the busiest time of the day; 0 for a revoked key. */
  readonly perSecond: number;
  /** Given if the client sends its requests in runs. Otherwise it sends them all the time. */
  readonly run?: { readonly requests: number; readonly everyMs: number };
  /** Whether the client ignores `Retry-After`, so that it is banned. */
  readonly isImpatient?: boolean;
  /** Whether its first request is sent after the start of the demo. */
  readonly isNew?: boolean;
}

/** The clients of the demo, oldest first. Clients that respect `Retry-After` have quota for hours. */
export const DEMO_CLIENTS: readonly DemoClient[] = [
  {
    key: { name: "Old kiosk", owner: "shop@pets.example", labels: ["unused"], plan: "pro" },
    createdDaysAgo: 200,
    habit: "browses",
    perSecond: 0,
  },
  {
    key: {
      name: "Mobile app",
      owner: "mobile@pets.example",
      labels: ["app", "production"],
      plan: "business",
    },
    createdDaysAgo: 180,
    habit: "browses",
    perSecond: 2,
  },
  {
    key: { name: "Web shop", owner: "shop@pets.example", labels: ["production"], plan: "pro" },
    createdDaysAgo: 150,
    habit: "orders",
    perSecond: 0.25,
  },
  {
    key: {
      name: "Shelter import",
      owner: "contract 2026-014",
      notes: "Adds the pets of 40 shelters. Call Ada before you change its limits.",
      labels: ["partner"],
      plan: "enterprise",
      limits: { perMinute: 6_000, perDay: 500_000 },
    },
    createdDaysAgo: 90,
    habit: "imports",
    perSecond: 1,
  },
  {
    key: {
      name: "Price comparison",
      owner: "hello@compare.example",
      notes: "Asked for a larger plan.",
      labels: ["partner"],
      plan: "free",
      access: "read",
    },
    createdDaysAgo: 60,
    habit: "browses",
    perSecond: 2,
    // The limit of a minute is 60 requests.
    run: { requests: 62, everyMs: 45 * MINUTE_MS },
  },
  {
    key: { name: "Forgotten script", owner: "linus@students.example", plan: "free" },
    createdDaysAgo: 45,
    habit: "browses",
    perSecond: 30,
    isImpatient: true,
    isNew: true,
  },
];

/** How long a client that ignores `Retry-After` waits between requests while it is banned. */
const BANNED_PAUSE_MS = 2_000;

/**
 * The time of use before the start, today and each day before. The rest of the last 24 hours has no requests, so that
 * the window of 24 hours and the usage of the last 24 hours count the same requests.
 */
export const OPEN_MS = 9 * HOUR_MS;

/** When a client sends its requests. */
export class Pace {
  #requests = 0;

  /** `openedAt` is when the clients began to send requests today. */
  constructor(
    private readonly client: DemoClient,
    private readonly openedAt: number,
  ) {}

  /** Returns how long the client waits for its next request, in whole milliseconds. */
  pauseMsAfter(
    { outcome, retryAfterSeconds }: Pick<Decision, "outcome" | "retryAfterSeconds">,
    now: number,
  ): number {
    const { isImpatient = false, perSecond, run } = this.client;
    if (!isImpatient && retryAfterSeconds > 0) return retryAfterSeconds * 1_000;
    if (outcome === "banned") return BANNED_PAUSE_MS;
    const sinceOpeningMs = now - this.openedAt;
    if (run && ++this.#requests % run.requests === 0) return run.everyMs - (sinceOpeningMs % run.everyMs);
    const rate = perSecond * (run ? 1 : activityAt(sinceOpeningMs));
    return Math.ceil((1_000 / rate) * (0.5 + Math.random()));
  }
}

/** The activity at a time of the day, from 0.4 to 1: low at first and in the evening. */
function activityAt(sinceOpeningMs: number): number {
  return 0.4 + 0.6 * Math.max(0, Math.sin((Math.PI * sinceOpeningMs) / (12 * HOUR_MS)));
}
