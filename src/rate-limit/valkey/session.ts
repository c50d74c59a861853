import type { BanRules, Usage, Subject, Decision } from "../../domain/rate-limit.ts";
import type { Clock } from "../../domain/ports.ts";
import { type Client, connect, createClient, type Hosts, within } from "./connection.ts";
import type { Asked } from "./batcher.ts";
import { readUsage, readDecisions } from "./script-replies.ts";
import { ADMIT, READ_USAGE, UNBAN, run } from "./scripts.ts";

export interface SessionOptions {
  readonly hosts: Hosts;
  readonly prefix: string;
  readonly ban: BanRules;
  /** Given to the scripts in place of the server's own. */
  readonly testClock?: Clock | undefined;
}

/** For what no request waits for: connecting, trying, and what operators ask. */
const UNHURRIED_MS = 500;

/** A connection that has been seen to count. */
export class Session {
  readonly #client: Client;
  readonly #options: SessionOptions;

  private constructor(client: Client, options: SessionOptions) {
    this.#client = client;
    this.#options = options;
  }

  /**
   * Connects, and counts a request on a throw-away key. That key lies in the same slot as the subject's own: of a
   * cluster, the node that failed must be seen to work again, and not any other.
   */
  static async open(options: SessionOptions, subject: Subject): Promise<Session> {
    const client = createClient(options.hosts);
    const session = new Session(client, options);
    try {
      await within(UNHURRIED_MS, session.#prove(subject));
      return session;
    } catch (error) {
      client.disconnect();
      throw error;
    }
  }

  async #prove(subject: Subject): Promise<void> {
    await connect(this.#client, this.#options.hosts);
    const key = `${this.#keyOf(subject)}:trial`;
    const call = { keys: [key], args: [...this.#preamble(), "1", "1"] };
    readDecisions(await run(this.#client, ADMIT, call), 1);
    await this.#client.unlink(key);
  }

  /** Called when the connection ends, whoever ends it. */
  onEnd(listener: () => void): void {
    this.#client.once("end", listener);
  }

  /** One script, one round trip, however many are asked for. */
  async decide(batch: readonly Asked[]): Promise<readonly Decision[]> {
    const keys = batch.map(({ subject }) => this.#keyOf(subject));
    const args = this.#preamble();
    for (const { limits } of batch) args.push(`${limits.perMinute}`, `${limits.perDay}`);
    return readDecisions(await run(this.#client, ADMIT, { keys, args }), batch.length);
  }

  async look(subject: Subject): Promise<Usage | undefined> {
    const call = { keys: [this.#keyOf(subject)], args: this.#preamble() };
    return readUsage(await within(UNHURRIED_MS, run(this.#client, READ_USAGE, call)));
  }

  async unban(subject: Subject, at: number): Promise<void> {
    const call = { keys: [this.#keyOf(subject)], args: [...this.#preamble(), `${at}`] };
    await within(UNHURRIED_MS, run(this.#client, UNBAN, call));
  }

  /** Does not wait for the other end, which may be dead. */
  close(): void {
    this.#client.disconnect();
  }

  /** What is in braces decides where a cluster keeps the key. */
  #keyOf(subject: Subject): string {
    return `${this.#options.prefix}{${subject}}`;
  }

  #preamble(): string[] {
    const { testClock, ban } = this.#options;
    return [testClock ? `${testClock.now()}` : "", `${ban.strikes}`, `${ban.graceMs}`, `${ban.lengthMs}`];
  }
}
