import type { PlanName } from "../domain/plans.ts";
import type { Limits } from "../domain/rate-limit.ts";

const NAMES = [
  "Rex",
  "Mia",
  "Balu",
  "Luna",
  "Fips",
  "Nala",
  "Oskar",
  "Cleo",
  "Bruno",
  "Wilma",
  "Zoë",
  "李小龙",
  "قمر",
];
const KINDS = ["beagle", "tabby", "parrot", "rabbit", "tortoise", "hamster", "goldfish"];

/** The body of a request that creates a pet. Every ninth pet has no status. */
export function samplePet(number: number): string {
  const name = NAMES[number % NAMES.length];
  const kind = KINDS[number % KINDS.length];
  const pet = { name: `${name} the ${kind}`, categoryId: 1 + (number % KINDS.length) };
  return JSON.stringify(number % 9 === 0 ? pet : { ...pet, status: "available" });
}

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

export interface TrafficOptions {
  /** The base URL of the API. */
  readonly url: string;
  readonly keys: readonly DemoKey[];
  /** How many pets there are at the start. */
  readonly pets: number;
}

interface DemoRequest {
  readonly method?: "POST" | "PATCH";
  readonly path: string;
  readonly body?: string;
}

interface DemoResponse {
  readonly status: number;
  readonly retryAfterMs: number;
  /** Of what was created, as a URL. */
  readonly location: string | null;
  readonly text: string;
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
    this.#running = [...active.map((key) => this.#run(key)), this.#runInvalidKey()];
  }

  /** Resolves when no client sends requests any more. */
  async stop(): Promise<void> {
    this.#stopped.abort();
    await Promise.all(this.#running);
  }

  async #run({ client, secret }: DemoKey): Promise<void> {
    const openOrders: string[] = [];
    while (!this.#stopped.signal.aborted) {
      const response = await this.#send(secret, this.#nextRequest(client.habit, openOrders));
      if (response?.location?.includes("/store/orders/") && openOrders.length < MAX_OPEN_ORDERS) {
        openOrders.push(response.location.slice(this.options.url.length));
      }
      await this.#sleep(pauseAfter(response, client));
    }
  }

  async #runInvalidKey(): Promise<void> {
    while (!this.#stopped.signal.aborted) {
      await this.#send("pet_live_mistyped", { path: "/pets" });
      await this.#sleep(INVALID_KEY_EVERY_MS);
    }
  }

  #nextRequest(habit: Habit, openOrders: string[]): DemoRequest {
    const chance = Math.random();
    if (habit === "imports" && chance < 0.5) {
      return { method: "POST", path: "/pets", body: samplePet(++this.#pets) };
    }
    if (habit === "orders" && chance < 0.3) {
      return { method: "POST", path: "/store/orders", body: `{"petId":${this.#anyPet()}}` };
    }
    if (habit === "orders" && chance < 0.55) {
      const path = openOrders.shift() ?? "/store/orders/1";
      const body = chance < 0.45 ? '{"status":"completed"}' : '{"status":"cancelled"}';
      return { method: "PATCH", path, body };
    }
    if (habit === "orders" && chance < 0.65) return { path: "/store/orders?limit=20" };
    if (chance < 0.7) return { path: `/pets?id=${this.#anyPet()}` };
    if (chance < 0.72) return { path: `/pets/${this.#anyPet()}` };
    if (chance < 0.73) return { path: "/pets?limit=1000" };
    return { path: chance < 0.9 ? "/pets?limit=20" : "/pets?status=available&limit=50" };
  }

  #anyPet(): number {
    return 1 + Math.floor(Math.random() * this.#pets);
  }

  /** Undefined if the traffic has stopped, or the server does not respond. */
  async #send(secret: string, { method, path, body }: DemoRequest): Promise<DemoResponse | undefined> {
    try {
      const response = await fetch(`${this.options.url}${path}`, {
        method: method ?? "GET",
        headers: { Authorization: `Bearer ${secret}`, "Content-Type": "application/json" },
        ...(body !== undefined && { body }),
        signal: this.#stopped.signal,
      });
      const { status, headers } = response;
      const retryAfterMs = Number(headers.get("retry-after") ?? 0) * 1_000;
      return { status, retryAfterMs, location: headers.get("location"), text: await response.text() };
    } catch {
      return undefined;
    }
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

function pauseAfter(response: DemoResponse | undefined, { isPatient, perSecond }: DemoKey["client"]): number {
  if (response?.status === 429 && isPatient) return response.retryAfterMs;
  if (response?.text.includes("key_banned")) return BANNED_PAUSE_MS;
  return (1_000 / perSecond) * (0.5 + Math.random());
}
