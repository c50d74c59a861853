import { ApiError, type NewPet, Petstore } from "../client/index.ts";
import type { Clock } from "../domain/ports/clock.ts";
import type { Decision } from "../domain/rate-limit.ts";
import { repeat } from "../runtime/repeat.ts";
import type { Scheduler } from "../runtime/scheduler.ts";
import { anyOperation, type DemoClient, OPEN_MS, Pace } from "./clients.ts";

const NAMES = "Rex Mia Balu Luna Fips Nala Oskar Cleo Bruno Wilma Zoë 李小龙 قمر".split(" ");
const KINDS = ["beagle", "tabby", "parrot", "rabbit", "tortoise", "hamster", "goldfish"];

/** Makes a sample pet. Every ninth pet has no status. */
function samplePet(number: number): NewPet {
  const name = NAMES[number % NAMES.length];
  const kind = KINDS[number % KINDS.length];
  const pet = { name: `${name} the ${kind}`, categoryId: 1 + (number % KINDS.length) };
  return number % 9 === 0 ? pet : { ...pet, status: "available" };
}

export interface DemoKey {
  readonly client: DemoClient;
  readonly keyId: number;
  readonly secret: string;
}

const PETS = 120;
const ORDERS = 30;

/** Adds pets and orders, with requests of the clients that also add them later. */
export async function addPetsAndOrders(url: string, keys: readonly DemoKey[]): Promise<void> {
  const petstoreOf = (habit: DemoClient["habit"]) => {
    const secret = keys.find(({ client }) => client.habit === habit)?.secret ?? "";
    return new Petstore({ key: secret, baseUrl: url });
  };
  const { pets } = petstoreOf("imports");
  const added = await Promise.all(
    Array.from({ length: PETS }, (_, index) => pets.create(samplePet(index + 1))),
  );
  const { orders } = petstoreOf("orders");
  const available = added.filter(({ status }) => status === "available");
  for (const [index, { id }] of available.slice(0, ORDERS).entries()) {
    const order = await orders.place({ petId: id });
    if (index % 3 === 0) await orders.complete(order.id);
    if (index % 6 === 1) await orders.cancel(order.id);
  }
}

/** How often a client sends an invalid key. */
const INVALID_KEY_EVERY_MS = 7_000;
const MAX_OPEN_ORDERS = 20;

interface TrafficOptions {
  /** The base URL of the API. */
  readonly url: string;
  readonly keys: readonly DemoKey[];
  readonly clock: Pick<Clock, "now">;
  readonly scheduler?: Scheduler | undefined;
}

/** Runs clients that use the API over loopback, each with one request at a time. Returns a function that stops them. */
export function startTraffic({ url: baseUrl, keys, clock, scheduler }: TrafficOptions): () => Promise<void> {
  const stopped = new AbortController();
  const { signal } = stopped;
  const openedAt = clock.now() - OPEN_MS;
  let lastPet = PETS;
  const anyPet = () => 1 + Math.floor(Math.random() * lastPet);
  // Each request is sent once and without delay, so that the console shows the rejected ones.
  const petstoreOf = (secret: string) =>
    new Petstore({ key: secret, baseUrl, waitForRateLimit: false, maxRetries: 0, onDeprecation: () => {} });

  const clients = keys.flatMap(({ client, secret }) => {
    if (client.perSecond === 0) return [];
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
    const pace = new Pace(client, openedAt);
    const send = async () => {
      const outcome = await calls[anyOperation(client.habit)]?.().catch((error: unknown) => error);
      return pace.pauseMsAfter(decisionIn(outcome), clock.now());
    };
    return [repeat(0, send, scheduler)];
  });
  const invalid = petstoreOf("pet_live_mistyped");
  const sendInvalid = async () => {
    await invalid.pets.listPage({ signal }).catch(() => {});
    return INVALID_KEY_EVERY_MS;
  };
  clients.push(repeat(0, sendInvalid, scheduler));
  return async () => {
    stopped.abort();
    await Promise.all(clients.map((client) => client.close()));
  };
}

function decisionIn(outcome: unknown): Pick<Decision, "outcome" | "retryAfterSeconds"> {
  const { code, retryAfter: retryAfterSeconds = 0 } = outcome instanceof ApiError ? outcome : {};
  const isRejected = code === "key_banned" || code === "rate_limited";
  return {
    outcome: !isRejected ? "allowed" : code === "key_banned" ? "banned" : "limited",
    retryAfterSeconds,
  };
}
