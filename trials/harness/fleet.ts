import { createKey, type LogLine, type PetstoreServer, runKeysCommand, startPetstore } from "./petstore.ts";
import { startPostgres } from "./postgres.ts";
import { freePorts, startAgainAfter } from "./server.ts";

/** Starts PostgreSQL, which waits for the disk at every commit, with the flags of a server that uses it. */
export async function startStores() {
  const postgres = await startPostgres({ durable: true });
  return { postgres, storage: ["--database-url", postgres.url] };
}

interface FleetOptions {
  readonly size: number;
  /** The flags that name the storage, for the servers and for the commands on keys. */
  readonly storage: readonly string[];
  readonly flags?: readonly string[];
  /** The program of the servers, which can be another release. */
  readonly program?: readonly string[];
  /** The prefix of the command of each server, which runs it in another context. */
  readonly under?: (index: number) => readonly string[];
}

/** All clients of a fleet have the same address, so it has no maximum. */
const ONE_CLIENT_ADDRESS = ["--max-connections-per-address", "0"];

/** Several Petstore servers on the same databases. A server keeps its address when it is started again. */
export class Fleet {
  readonly ports: readonly number[];
  readonly servers: PetstoreServer[] = [];
  readonly #options: FleetOptions;
  /** The logs of processes that have ended. */
  readonly #earlierLogs: LogLine[][];

  private constructor(options: FleetOptions) {
    this.#options = options;
    this.ports = freePorts(options.size);
    this.#earlierLogs = this.ports.map(() => []);
  }

  static async start(options: FleetOptions): Promise<Fleet> {
    const fleet = new Fleet(options);
    fleet.servers.push(...(await Promise.all(fleet.ports.map((_, index) => fleet.#start(index)))));
    return fleet;
  }

  get pids(): readonly number[] {
    return this.servers.map(({ pid }) => pid);
  }

  get urls(): readonly string[] {
    return this.ports.map((port) => `http://127.0.0.1:${port}/v1`);
  }

  /** The logs of each server, including those before its restarts. */
  get logs(): readonly (readonly LogLine[])[] {
    return this.servers.map(({ log }, i) => [...(this.#earlierLogs[i] ?? []), ...log]);
  }

  async stopServer(index: number, signal: NodeJS.Signals = "SIGTERM"): Promise<number | undefined> {
    return await this.servers[index]?.stop(signal);
  }

  async startServer(index: number): Promise<void> {
    this.#earlierLogs[index]?.push(...(this.servers[index]?.log ?? []));
    this.servers[index] = await this.#start(index);
  }

  keys(...args: string[]): Promise<Record<string, unknown>> {
    return runKeysCommand(this.#options.storage, ...args);
  }

  createKey(...plan: string[]): Promise<{ id: string; key: string }> {
    return createKey(this.#options.storage, ...plan);
  }

  async stop(): Promise<void> {
    await Promise.all(this.servers.map((server) => server.stop()));
  }

  /**
   * Starts a server, with retries. A server does not start while its database takes longer than 2 s to respond, as it
   * may on a busy machine.
   */
  #start(index: number): Promise<PetstoreServer> {
    const { storage, flags = [], under, program } = this.#options;
    const all = [...storage, ...flags, ...ONE_CLIENT_ADDRESS, "--port", `${this.ports[index] ?? 0}`];
    return startAgainAfter(/no response within/, () => startPetstore(all, under?.(index), program));
  }
}
