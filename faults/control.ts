import { charge } from "../test/engines/charges.ts";

const EVERY_MS = 20;

/**
 * A server in a process of its own that does nothing but answer, asked at the same time from the same place. How long
 * it takes is what the machine adds to everything: no fault of an engine, and none of the service, can be the reason.
 */
export class Control {
  readonly #waits: { readonly endedAt: number; readonly ms: number }[] = [];
  readonly #server: Bun.Subprocess;
  readonly #timer: Timer;

  private constructor(server: Bun.Subprocess, url: string) {
    this.#server = server;
    this.#timer = setInterval(() => void this.#ask(url), EVERY_MS);
  }

  static async start(): Promise<Control> {
    const server = Bun.spawn([process.execPath, import.meta.path], { stdio: ["ignore", "pipe", "inherit"] });
    charge({ server: server.pid, quit: "SIGKILL" });
    const reader = server.stdout.getReader();
    const { value } = await reader.read();
    reader.releaseLock();
    return new Control(server, new TextDecoder().decode(value).trim());
  }

  /** The longest that it took to answer since then, by `performance.now()`. */
  longestSince(time: number): number {
    return Math.max(0, ...this.#waits.flatMap(({ endedAt, ms }) => (endedAt >= time ? ms : [])));
  }

  stop(): void {
    clearInterval(this.#timer);
    this.#server.kill("SIGKILL");
    charge({ gone: this.#server.pid });
  }

  async #ask(url: string): Promise<void> {
    const startedAt = performance.now();
    // When it is stopped, what is under way may break off; that says nothing about the machine.
    const isAnswered = await fetch(url).then(
      ({ ok }) => ok,
      () => false,
    );
    const endedAt = performance.now();
    if (isAnswered) this.#waits.push({ endedAt, ms: endedAt - startedAt });
  }
}

if (import.meta.main) {
  const server = Bun.serve({ hostname: "127.0.0.1", port: 0, fetch: () => new Response("here") });
  process.stdout.write(`${server.url.href}\n`);
}
