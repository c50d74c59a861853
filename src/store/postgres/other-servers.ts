import type { SQL } from "bun";
import { withTimeout } from "../../runtime/timeout.ts";
import { connect } from "./connection.ts";
import { readPromotion } from "./timeline.ts";

/** A server that was promoted. */
interface Promotion {
  readonly url: string;
  readonly number: number;
}

/** They are asked once a second. */
const MAX_RESPONSE_MS = 1_000;

/**
 * Asks the other servers of a database whether they were promoted. It keeps a connection to each: a new one every
 * second would make both sides verify a password, and a standby that rejects writes would log each.
 */
export class OtherServers {
  readonly #connections = new Map<string, SQL>();

  /** Returns the server with the latest timeline among those that respond and accept writes. */
  async latestPromotion(urls: readonly string[]): Promise<Promotion | undefined> {
    for (const url of this.#connections.keys()) if (!urls.includes(url)) this.#close(url);
    const numbers = await Promise.all(urls.map((url) => this.#ask(url)));
    const number = Math.max(...numbers);
    const url = urls[numbers.indexOf(number)];
    return url === undefined || number === 0 ? undefined : { url, number };
  }

  close(): void {
    for (const url of this.#connections.keys()) this.#close(url);
  }

  async #ask(url: string): Promise<number> {
    const sql =
      this.#connections.get(url) ?? connect(url, { acceptsStandby: true, connectMs: MAX_RESPONSE_MS });
    this.#connections.set(url, sql);
    try {
      return await withTimeout(MAX_RESPONSE_MS, readPromotion(sql));
    } catch {
      this.#close(url);
      return 0;
    }
  }

  #close(url: string): void {
    void this.#connections.get(url)?.close({ timeout: 0 });
    this.#connections.delete(url);
  }
}
