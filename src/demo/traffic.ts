import { ApiError, type NewPet, Petstore } from "../client/index.ts";
import type { NewKey } from "../domain/api-keys.ts";
import type { OperationId } from "../domain/usage-history.ts";

const NAMES = "Rex Mia Balu Luna Fips Nala Oskar Cleo Bruno Wilma Zoë 李小龙 قمر".split(" ");
const KINDS = ["beagle", "tabby", "parrot", "rabbit", "tortoise", "hamster", "goldfish"];

/** Makes a sample pet. Every ninth pet has no status. */
export function samplePet(number: number): NewPet {
  const name = NAMES[number % NAMES.length];
  const kind = KINDS[number % KINDS.length];
  const pet = { name: `${name} the ${kind}`, categoryId: 1 + (number % KINDS.length) };
  return number % 9 === 0 ? pet : { ...pet, status: "available" };
}

/** What a client of the demo mostly does. */
type Habit = "browses" | "orders" | "imports";

/** A client of the demo. */
export interface DemoClient {
  /** Its API key. */
  readonly key: Omit<NewKey, "createdAt">;
  readonly habit: Habit;
  /** The requests per second; 0 for a revoked key. */
  readonly perSecond: number;
  /** Whether the client ignores `Retry-After`, so that it is banned. */
  readonly isImpatient?: boolean;
  /** The requests an hour in the weeks before the start, at the busiest time of the day. */
  readonly earlierPerHour: number;
  readonly createdDaysAgo: number;
}

/** The clients of the demo, oldest first. */
export const DEMO_CLIENTS: readonly DemoClient[] = [
  {
    key: { name: "Old kiosk", owner: "shop@pets.example", labels: ["unused"], plan: "pro" },
    habit: "browses",
    perSecond: 0,
    earlierPerHour: 0,
    createdDaysAgo: 200,
  },
  {
    key: {
      name: "Mobile app",
      owner: "mobile@pets.example",
      labels: ["app", "production"],
      plan: "business",
    },
    habit: "browses",
    perSecond: 5,
    earlierPerHour: 4_100,
    createdDaysAgo: 180,
  },
  {
    key: { name: "Web shop", owner: "shop@pets.example", labels: ["production"], plan: "pro" },
    habit: "orders",
    perSecond: 2.5,
    earlierPerHour: 380,
    createdDaysAgo: 150,
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
    habit: "imports",
    perSecond: 1,
    earlierPerHour: 900,
    createdDaysAgo: 90,
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
    habit: "browses",
    perSecond: 1.6,
    earlierPerHour: 40,
    createdDaysAgo: 60,
  },
  {
    key: { name: "Forgotten script", owner: "linus@students.example", plan: "free" },
    habit: "browses",
    perSecond: 30,
    isImpatient: true,
    earlierPerHour: 12,
    createdDaysAgo: 45,
  },
];

export interface DemoKey {
  readonly client: DemoClient;
  readonly keyId: number;
  readonly secret: string;
}

/** The share of each operation in the requests of a client. */
export const HABITS: Readonly<Record<Habit, Readonly<Partial<Record<OperationId, number>>>>> = {
  browses: { listPets: 0.85, getPet: 0.15 },
  orders: { listPets: 0.4, listOrders: 0.15, placeOrder: 0.25, updateOrder: 0.2 },
  imports: { createPet: 0.6, listPets: 0.4 },
};

function anyOperation(habit: Habit): string {
  let chance = Math.random();
  const parts = Object.entries(HABITS[habit]);
  return parts.find(([, part]) => (chance -= part) < 0)?.[0] ?? "listPets";
}

/** How often a client sends an invalid key. */
const INVALID_KEY_EVERY_MS = 7_000;
/** How long a banned client waits between requests. */
const BANNED_PAUSE_MS = 2_000;
const MAX_OPEN_ORDERS = 20;

interface TrafficOptions {
  /** The base URL of the API. */
  readonly url: string;
  readonly keys: readonly DemoKey[];
  /** The number of pets at the start. */
  readonly pets: number;
}

/** Runs clients that use the API over loopback, each with one request at a time. Returns a function that stops them. */
export function startTraffic({ url: baseUrl, keys, pets: petsAtStart }: TrafficOptions): () => void {
  const stopped = new AbortController();
  const { signal } = stopped;
  let lastPet = petsAtStart;
  const anyPet = () => 1 + Math.floor(Math.random() * lastPet);
  // Each request is sent once and without delay, so that the console shows the rejected ones.
  const petstoreOf = (key: string) =>
    new Petstore({ key, baseUrl, waitForRateLimit: false, maxRetries: 0, onDeprecation: () => {} });

  async function repeat(call: () => Promise<unknown>, pauseMsAfter: (outcome: unknown) => number) {
    const outcome = await call().catch((error: unknown) => error);
    if (!signal.aborted) setTimeout(() => void repeat(call, pauseMsAfter), pauseMsAfter(outcome)).unref();
  }

  for (const { client, secret } of keys) {
    if (client.perSecond === 0) continue;
    const { pets, orders } = petstoreOf(secret);
    const openOrders: bigint[] = [];
    const calls: Readonly<Record<string, () => Promise<unknown>>> = {
      createPet: () => pets.create(samplePet(++lastPet), { signal }),
      getPet: () => pets.get(anyPet(), { signal }),
      listOrders: () => orders.listPage({ signal }),
      async placeOrder() {
        const { id } = await orders.place({ petId: anyPet() }, { signal });
        if (openOrders.length < MAX_OPEN_ORDERS) openOrders.push(id);
      },
      updateOrder() {
        const id = openOrders.shift() ?? 1n;
        return Math.random() < 0.6 ? orders.complete(id, { signal }) : orders.cancel(id, { signal });
      },
      listPets: () =>
        Math.random() < 0.7
          ? pets.byIds([anyPet()], { signal })
          : pets.listPage({ status: "available", limit: Math.random() < 0.05 ? 1_000 : 50, signal }),
    };
    const call = async () => calls[anyOperation(client.habit)]?.();
    void repeat(call, (outcome) => pauseAfter(outcome, client));
  }
  const invalid = petstoreOf("pet_live_mistyped");
  void repeat(
    () => invalid.pets.listPage({ signal }),
    () => INVALID_KEY_EVERY_MS,
  );
  return () => stopped.abort();
}

function pauseAfter(outcome: unknown, { isImpatient = false, perSecond }: DemoClient): number {
  const { code, retryAfter = 0 } = outcome instanceof ApiError ? outcome : {};
  if (!isImpatient && retryAfter > 0) return retryAfter * 1_000;
  return code === "key_banned" ? BANNED_PAUSE_MS : (1_000 / perSecond) * (0.5 + Math.random());
}
