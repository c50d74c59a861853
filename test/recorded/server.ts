import { hostname } from "node:os";
import { type Adapters, openAdapters } from "../../src/adapters/open-adapters.ts";
import type { Setting } from "../../src/operator/operations.ts";
import { type App, serveOn } from "../../src/app.ts";
import type { Config } from "../../src/config/config.ts";
import { IDEMPOTENCY_CONFLICT } from "../../src/domain/idempotency.ts";
import { Unavailable } from "../../src/api/errors.ts";
import type { PolicyChange } from "../../src/domain/policy.ts";
import type { NewKey } from "../../src/domain/api-keys.ts";
import { generateSecret, toNewSecret } from "../../src/domain/secrets.ts";
import type { Attribution } from "../../src/domain/audit.ts";
import type { ClientStore } from "../../src/domain/ports/pets-and-orders.ts";
import { silentLog } from "../../src/observe/log.ts";
import { temporaryDirectory } from "../../trials/harness/cleanup.ts";
import { onFreePort } from "../../trials/harness/server.ts";
import { configIn, TestClock, type TestConfig } from "../service.ts";
import { ORIGIN } from "./message.ts";

export interface ServerOptions {
  /** The keys by the name that requests use. */
  readonly keys?: Readonly<Record<string, Partial<NewKey>>>;
  readonly config?: TestConfig;
  readonly policy?: PolicyChange;
  readonly shownSettings?: readonly Setting[];
  /** Timeouts of connections are counted in seconds of this length. */
  readonly secondMs?: number;
  /** What is stored before the first request, with identifiers from 1 on. */
  readonly prepare?: (server: Server) => Promise<unknown>;
  /** Moves what is stored to where the server finds it. No server runs meanwhile. */
  readonly moveData?: (from: Config) => Promise<Config>;
}

/** One server, by default on SQLite, with a clock that stands still. */
export class Server {
  port = 0;
  readonly by: Attribution;
  /** The request for a pet that is called `slow` waits in between. */
  readonly slowPet = { begins: Promise.withResolvers<void>(), goesOn: Promise.withResolvers<void>() };
  readonly #keys = new Map<string, { id: number; secret: string }>();
  #app: App | undefined;
  #stopped: Promise<void> | undefined;

  private constructor(
    public adapters: Adapters,
    readonly clock: TestClock,
  ) {
    this.by = { actor: { kind: "command line", name: "alice" }, at: clock.now() };
  }

  static async start(all: ServerOptions): Promise<Server> {
    const { keys = {}, policy = {}, prepare, moveData, config: given, ...options } = all;
    let config = configIn(temporaryDirectory("recorded"), { publicUrl: `${ORIGIN}/v1`, ...given });
    const clock = new TestClock();
    const adapters = await openAdapters(config.data, clock, silentLog, clock);
    const server = new Server(adapters, clock);
    // The ban rules apply while the data is prepared.
    const byServer = { ...server.by, actor: { kind: "server", name: hostname() } } as const;
    await adapters.policies.updatePolicy(policy, byServer);
    adapters.applyPolicy(await adapters.policies.readPolicy());
    for (const [name, key] of Object.entries(keys)) {
      const secret = generateSecret(config.data.environment);
      const draft = { name, plan: "business", createdAt: clock.now(), ...key } as const;
      const { id } = await adapters.keys.createKey(draft, toNewSecret(secret), server.by);
      server.#keys.set(name, { id, secret });
    }
    await prepare?.(server);
    if (moveData) {
      await adapters.close();
      config = await moveData(config);
      server.adapters = await openAdapters(config.data, clock, silentLog, clock);
      server.adapters.applyPolicy(await server.adapters.policies.readPolicy());
    }
    // The public URL hides the port, so one is chosen.
    server.#app = await onFreePort((port) => {
      server.port = port;
      const clientStore = failing(server.adapters.clientStore, server.slowPet);
      return serveOn(
        { ...server.adapters, clientStore },
        { ...config, port },
        { ...options, clock, log: silentLog },
      );
    });
    return server;
  }

  get adminPort(): number {
    return this.#app?.admin?.server.port ?? 0;
  }

  secret(name: string): string | undefined {
    return this.#keys.get(name)?.secret;
  }

  idOfKey(name: string): number {
    return this.#keys.get(name)?.id ?? 0;
  }

  stop(): Promise<void> {
    this.#stopped ??= this.#app?.close() ?? Promise.resolve();
    return this.#stopped;
  }
}

/** A store that fails, or takes its time, for pets of certain names. */
function failing(clientStore: ClientStore, slowPet: Server["slowPet"]): ClientStore {
  const createPet: ClientStore["createPet"] = async (pet, at, request) => {
    if (pet.name === "broken") throw new Error("broken");
    if (pet.name === "unavailable") throw new Unavailable("unavailable", { retryAfterSeconds: 2 });
    if (pet.name === "in progress") return IDEMPOTENCY_CONFLICT;
    if (pet.name === "slow") {
      slowPet.begins.resolve();
      await slowPet.goesOn.promise;
    }
    return clientStore.createPet(pet, at, request);
  };
  return new Proxy(clientStore, {
    get(target, name) {
      if (name === "createPet") return createPet;
      const value: unknown = Reflect.get(target, name);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}
