import { connect, type Socket } from "node:net";
import type { Outcome } from "./cases/case.ts";

export interface RawResponse {
  readonly status: number;
  /** By name in lower case. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: string;
}

/** What the responses of the echo handler tell of the requests: how it saw each one, or that it did not. */
export const outcomesOf = (responses: readonly RawResponse[]) =>
  responses.map(({ status, headers }): Outcome =>
    status === 200 ? decodeURIComponent(headers.get("reading") ?? "") : (status as 400),
  );

/** Splits what a server sends into responses, all of which have a `Content-Length`. */
export class ResponseReader {
  /** Without 1xx. */
  readonly responses: RawResponse[] = [];
  #text = "";

  /** Bytes that are no complete response. */
  get incomplete(): string {
    return this.#text;
  }

  add(text: string): void {
    this.#text += text;
    while (this.#takeResponse());
  }

  #takeResponse(): boolean {
    const end = this.#text.indexOf("\r\n\r\n");
    if (end === -1) return false;
    const [statusLine = "", ...lines] = this.#text.slice(0, end).split("\r\n");
    const headers = new Map(
      lines.map((line) => [line.split(":", 1)[0]?.toLowerCase() ?? "", line.replace(/^[^:]*: */, "")]),
    );
    const bodyEnd = end + 4 + Number(headers.get("content-length") ?? 0);
    if (this.#text.length < bodyEnd) return false;
    const status = Number(statusLine.split(" ")[1]);
    if (status >= 200) this.responses.push({ status, headers, body: this.#text.slice(end + 4, bodyEnd) });
    this.#text = this.#text.slice(bodyEnd);
    return true;
  }
}

/** Sends bytes, and collects the responses, whatever they respond to. */
export class RawClient {
  /** Resolves when the server has closed the connection. */
  readonly closed: Promise<void>;
  readonly #socket: Socket;
  readonly #reader = new ResponseReader();
  #isClosed = false;
  #onChange = () => {};

  constructor(port: number, localAddress = "127.0.0.1") {
    this.#socket = connect({ port, host: "127.0.0.1", localAddress, allowHalfOpen: true, noDelay: true });
    this.#socket.on("data", (bytes) => {
      this.#reader.add(bytes.toString("latin1"));
      this.#onChange();
    });
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    this.#socket.on("end", () => {
      this.#isClosed = true;
      this.#socket.end();
      this.#onChange();
      resolve();
    });
    this.#socket.on("error", (error) => {
      this.#isClosed = true;
      this.#onChange();
      reject(error);
    });
    promise.catch(() => {});
    this.closed = promise;
  }

  get isClosed(): boolean {
    return this.#isClosed;
  }

  get responses(): readonly RawResponse[] {
    return this.#reader.responses;
  }

  get incomplete(): string {
    return this.#reader.incomplete;
  }

  send(bytes: string): Promise<void> {
    return new Promise((resolve) => this.#socket.write(bytes, "latin1", () => resolve()));
  }

  /** Closes the sending side. */
  endSending(): void {
    this.#socket.end();
  }

  /** Until there are so many responses, or the server has closed the connection. */
  async receive(count: number): Promise<void> {
    while (this.responses.length < count && !this.#isClosed) {
      await new Promise<void>((resolve) => (this.#onChange = resolve));
    }
  }

  /** Until nothing has arrived for so long, or the server has closed the connection. */
  async quiet(milliseconds: number): Promise<void> {
    while (!this.#isClosed) {
      const change = new Promise<"change">((resolve) => (this.#onChange = () => resolve("change")));
      if ((await Promise.race([change, Bun.sleep(milliseconds)])) !== "change") return;
    }
  }

  destroy(): void {
    this.#socket.destroy();
  }
}
