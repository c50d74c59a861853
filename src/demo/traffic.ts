import type { DemoKey, Habit } from "./clients.ts";
import { samplePet } from "./sample-pets.ts";

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
