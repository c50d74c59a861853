import type { PlanName } from "../domain/plans.ts";
import type { Limits } from "../domain/rate-limit.ts";

/** What a client of the demo does most. */
export type Habit = "browses" | "orders" | "imports";

/** A key of the demo, and the client that uses it. */
export interface DemoClient {
  readonly name: string;
  readonly owner: string;
  readonly notes?: string;
  readonly labels: readonly string[];
  readonly plan: PlanName;
  readonly limits?: Limits;
  readonly access: "read" | "write";
  readonly habit: Habit;
  /** Requests; 0 for a key that is revoked. */
  readonly perSecond: number;
  /** Whether it waits as long as `Retry-After` says. One that does not is banned. */
  readonly isPatient: boolean;
  /** Requests an hour in the weeks before the start, at the busiest time of the day. */
  readonly earlierPerHour: number;
  readonly createdDaysAgo: number;
}

const CLIENT = { labels: [], access: "write", habit: "browses", isPatient: true } as const;

/** Oldest first. */
export const DEMO_CLIENTS: readonly DemoClient[] = [
  {
    ...CLIENT,
    name: "Old kiosk",
    owner: "shop@pets.example",
    labels: ["unused"],
    plan: "pro",
    perSecond: 0,
    earlierPerHour: 0,
    createdDaysAgo: 200,
  },
  {
    ...CLIENT,
    name: "Mobile app",
    owner: "mobile@pets.example",
    labels: ["app", "production"],
    plan: "business",
    perSecond: 5,
    earlierPerHour: 4_100,
    createdDaysAgo: 180,
  },
  {
    ...CLIENT,
    name: "Web shop",
    owner: "shop@pets.example",
    labels: ["production"],
    plan: "pro",
    habit: "orders",
    perSecond: 2.5,
    earlierPerHour: 380,
    createdDaysAgo: 150,
  },
  {
    ...CLIENT,
    name: "Shelter import",
    owner: "contract 2026-014",
    notes: "Adds the pets of 40 shelters. Call Ada before you change its limits.",
    labels: ["partner"],
    plan: "enterprise",
    limits: { perMinute: 6_000, perDay: 500_000 },
    habit: "imports",
    perSecond: 1,
    earlierPerHour: 900,
    createdDaysAgo: 90,
  },
  {
    ...CLIENT,
    name: "Price comparison",
    owner: "hello@compare.example",
    notes: "Asked for a larger plan.",
    labels: ["partner"],
    plan: "free",
    access: "read",
    perSecond: 1.6,
    earlierPerHour: 40,
    createdDaysAgo: 60,
  },
  {
    ...CLIENT,
    name: "Forgotten script",
    owner: "linus@students.example",
    plan: "free",
    perSecond: 30,
    isPatient: false,
    earlierPerHour: 12,
    createdDaysAgo: 45,
  },
];

export interface DemoKey {
  readonly client: DemoClient;
  readonly keyId: number;
  readonly secret: string;
}
