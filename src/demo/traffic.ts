import { ApiError, type NewPet, Petstore } from "../client/index.ts";
import type { NewKey } from "../domain/api-keys.ts";

const NAMES = "Rex Mia Balu Luna Fips Nala Oskar Cleo Bruno Wilma Zoë 李小龙 قمر".split(" ");
const KINDS = ["beagle", "tabby", "parrot", "rabbit", "tortoise", "hamster", "goldfish"];

/** Every ninth pet has no status. */
export function samplePet(number: number): NewPet {
  const name = NAMES[number % NAMES.length];
  const kind = KINDS[number % KINDS.length];
  const pet = { name: `${name} the ${kind}`, categoryId: 1 + (number % KINDS.length) };
  return number % 9 === 0 ? pet : { ...pet, status: "available" };
}

/** What a client of the demo does most. */
export type Habit = "browses" | "orders" | "imports";

/** A client of the demo. */
export interface DemoClient {
  /** Its API key. */
  readonly key: Omit<NewKey, "createdAt">;
  readonly habit: Habit;
  /** Requests; 0 for a key that is revoked. */
  readonly perSecond: number;
  /** Whether it does not wait as long as `Retry-After` says, so that it is banned. */
  readonly isImpatient?: boolean;
  /** Requests an hour in the weeks before the start, at the busiest time of the day. */
  readonly earlierPerHour: number;
  readonly createdDaysAgo: number;
}

/** Oldest first. */
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

interface TrafficOptions {
  /** The base URL of the API. */
  readonly url: string;
  readonly keys: readonly DemoKey[];
  /** How many pets there are at the start. */
  readonly pets: number;
}

/** A client whose key is not valid. */
const INVALID_KEY_EVERY_MS = 7_000;
/** A client that was banned still tries now and then. */
const BANNED_PAUSE_MS = 2_000;
const MAX_OPEN_ORDERS = 20;

/** Clients that use the API over loopback until `stop`, each with one request at a time. */
export class Traffic {
  readonly #stopped = new AbortController();
  readonly #running: readonly Promise<void>[];
  #pets: number;

  constructor(private readonly options: TrafficOptions) {
    this.#pets = options.pets;
    const active = options.keys.filter(({ client }) => client.perSecond > 0);
    const invalid = this.#petstore("pet_live_mistyped");
    this.#running = [
      ...active.map(({ client, secret }) => {
        const petstore = this.#petstore(secret);
        const openOrders: bigint[] = [];
        const call = () => this.#call(petstore, client.habit, openOrders);
        return this.#repeat(call, (outcome) => pauseAfter(outcome, client));
      }),
      this.#repeat(
        () => invalid.pets.listPage({ signal: this.#stopped.signal }),
        () => INVALID_KEY_EVERY_MS,
      ),
    ];
  }

  /** Resolves when no client sends requests any more. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await Promise.all(this.#running);
  }

  async #repeat(call: () => Promise<unknown>, pauseMsAfter: (outcome: unknown) => number): Promise<void> {
    while (!this.#stopped.signal.aborted) {
      const outcome = await call().catch((error: unknown) => error);
      await this.#sleep(pauseMsAfter(outcome));
    }
  }

  /** Sends each request once and at once: the console shows those that are rejected. */
  #petstore(key: string): Petstore {
    const { url: baseUrl } = this.options;
    return new Petstore({ key, baseUrl, waitForRateLimit: false, maxRetries: 0, onDeprecation: () => {} });
  }

  async #call({ pets, orders }: Petstore, habit: Habit, openOrders: bigint[]): Promise<unknown> {
    const { signal } = this.#stopped;
    const chance = Math.random();
    if (habit === "imports" && chance < 0.5) return pets.create(samplePet(++this.#pets), { signal });
    if (habit === "orders" && chance < 0.3) {
      const { id } = await orders.place({ petId: this.#anyPet() }, { signal });
      return openOrders.length < MAX_OPEN_ORDERS && openOrders.push(id);
    }
    if (habit === "orders" && chance < 0.55) {
      const id = openOrders.shift() ?? 1n;
      return chance < 0.45 ? orders.complete(id, { signal }) : orders.cancel(id, { signal });
    }
    if (habit === "orders" && chance < 0.65) return orders.listPage({ signal });
    if (chance < 0.7) return pets.byIds([this.#anyPet()], { signal });
    if (chance < 0.72) return pets.get(this.#anyPet(), { signal });
    if (chance < 0.73) return pets.listPage({ limit: 1_000, signal });
    return pets.listPage(chance < 0.9 ? { signal } : { status: "available", limit: 50, signal });
  }

  #anyPet(): number {
    return 1 + Math.floor(Math.random() * this.#pets);
  }

  /** Ends early when the traffic stops. */
  #sleep(ms: number): Promise<void> {
    const { signal } = this.#stopped;
    if (signal.aborted) return Promise.resolve();
    return new Promise((resolve) => {
      const wake = () => {
        clearTimeout(timer);
        signal.removeEventListener("abort", wake);
        resolve();
      };
      const timer = setTimeout(wake, ms);
      signal.addEventListener("abort", wake);
    });
  }
}

function pauseAfter(outcome: unknown, { isImpatient = false, perSecond }: DemoClient): number {
  const { code, retryAfter = 0 } = outcome instanceof ApiError ? outcome : {};
  if (!isImpatient && retryAfter > 0) return retryAfter * 1_000;
  return code === "key_banned" ? BANNED_PAUSE_MS : (1_000 / perSecond) * (0.5 + Math.random());
}
