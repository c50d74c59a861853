import { freePort } from "../engines/port.ts";
import { command } from "../process.ts";
import { type Instance, type LogLine, startInstance } from "./instance.ts";

export interface FleetOptions {
  readonly size: number;
  /** Where everything is kept: what servers and the commands on keys are both told. */
  readonly place: readonly string[];
  /** What only servers are told. */
  readonly flags?: readonly string[];
  /** A command that makes itself into the one behind it. */
  readonly under?: readonly string[];
}

/** Several servers on the same engines, each at an address that it keeps when it is started again. */
export class Fleet {
  readonly #options: FleetOptions;
  readonly #ports: readonly number[];
  readonly #instances: Instance[] = [];
  /** What members that are gone have said. */
  readonly #past: LogLine[][];

  private constructor(options: FleetOptions) {
    this.#options = options;
    this.#ports = Array.from({ length: options.size }, freePort);
    this.#past = this.#ports.map(() => []);
  }

  /** All at once. */
  static async start(options: FleetOptions): Promise<Fleet> {
    const fleet = new Fleet(options);
    fleet.#instances.push(...(await Promise.all(fleet.#ports.map((_, i) => fleet.#launch(i)))));
    return fleet;
  }

  get members(): readonly Instance[] {
    return this.#instances;
  }

  get urls(): readonly string[] {
    return this.#ports.map((port) => `http://127.0.0.1:${port}/v1`);
  }

  /** By member, over all its lives. */
  get logs(): readonly (readonly LogLine[])[] {
    return this.#instances.map(({ log }, i) => [...(this.#past[i] ?? []), ...log]);
  }

  /** Ends one by the signal, and gives its exit code. */
  async end(member: number, signal: NodeJS.Signals): Promise<number | undefined> {
    const instance = this.#instances[member];
    return await instance?.stop(signal);
  }

  /** Starts one that has ended again, at its address. */
  async revive(member: number): Promise<void> {
    this.#past[member]?.push(...(this.#instances[member]?.log ?? []));
    this.#instances[member] = await this.#launch(member);
  }

  /** A command on keys, on the same engines; what it prints as JSON. */
  async keys(...args: string[]): Promise<Record<string, unknown>> {
    const { code, out, err } = await command("keys", ...args, "--json", ...this.#options.place);
    if (code !== 0) throw new Error(`keys ${args[0]}: ${err}`);
    return JSON.parse(out);
  }

  /** A key that no load of a test exhausts, unless another plan is asked for. */
  async newKey(...plan: string[]): Promise<{ id: string; key: string }> {
    const chosen = plan.length > 0 ? plan : UNLIMITED;
    const { id, key } = await this.keys("create", "--name", "test", "--plan", ...chosen);
    return { id: String(id), key: String(key) };
  }

  async stop(): Promise<void> {
    await Promise.all(this.#instances.map((each) => each.stop()));
  }

  #launch(member: number): Promise<Instance> {
    const { place, flags = [], under } = this.#options;
    return startInstance([...place, ...flags, "--port", `${this.#ports[member]}`], under);
  }
}

const UNLIMITED = ["enterprise", "--per-minute", "1000000", "--per-day", "100000000"];
