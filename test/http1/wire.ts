import { Connection, type Line, type Service } from "../../src/http1/connection.ts";
import type { Request } from "../../src/http1/request.ts";
import type { Response } from "../../src/http1/response.ts";

type Answer = (request: Request) => Response | Promise<Response>;

export const DATE = "Date: Sun, 15 Nov 2026 12:00:00 GMT\r\n";

export const reply = (body: string, status: Response["status"] = 200): Response => ({
  status,
  lines: "",
  body,
});

/** One connection without a network: both ends of it are in the test's hands, and so are the seconds. */
export class Wire implements Line, Service {
  readonly remoteAddress: string | undefined;
  readonly date = DATE;
  readonly connection: Connection;
  /** Everything that has gone out. */
  sent = "";
  /** What has become of the line. */
  readonly events: string[] = [];
  /** How many bytes the line takes before it blocks. */
  room = Infinity;
  tick = 0;
  isLeaving = false;

  constructor(
    readonly handle: Answer,
    address: string | null = "203.0.113.9",
  ) {
    this.remoteAddress = address ?? undefined;
    this.connection = new Connection(this, this);
  }

  handleError(error: unknown): Response {
    return reply(`fault: ${(error as Error).message}`, 500);
  }

  write(data: string | Uint8Array): number {
    const bytes = Buffer.from(data as string);
    const taken = bytes.subarray(0, this.room);
    this.room -= taken.length;
    this.sent += taken.toString("latin1");
    return taken.length;
  }

  readonly pause = () => void this.events.push("pause");
  readonly resume = () => void this.events.push("resume");
  readonly shutdown = () => void this.events.push("shutdown");
  readonly end = () => void this.#close("end");
  readonly terminate = () => void this.#close("terminate");

  receive(...texts: string[]): this {
    for (const text of texts) this.connection.receive(Buffer.from(text, "latin1"));
    return this;
  }

  /** The client takes what has gone out, and so many bytes more. */
  drain(room = Infinity): this {
    this.room = room;
    this.connection.drain();
    return this;
  }

  /** So many seconds pass. */
  pass(seconds: number): this {
    for (let i = 0; i < seconds; i++) {
      this.tick++;
      this.connection.check();
    }
    return this;
  }

  get statuses(): number[] {
    return [...this.sent.matchAll(/HTTP\/1\.1 (\d+)/g)].map(([, status]) => Number(status));
  }

  get bodies(): string[] {
    return [...this.sent.matchAll(/Content-Length: (\d+)\r\n\r\n/g)].map(
      ({ 0: { length }, 1: size, index }) => this.sent.slice(index + length, index + length + Number(size)),
    );
  }

  #close(how: string): void {
    this.events.push(how);
    this.connection.closed();
  }
}
