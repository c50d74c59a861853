import type { Awaitable } from "../domain/awaitable.ts";
import { Body, type Progress } from "./body-reader.ts";
import type { HeaderFields } from "./header-fields.ts";
import type { Head } from "./request-head.ts";
import { RequestAborted, type Request } from "./request.ts";
import type { ReadBuffer } from "./read-buffer.ts";

/** What an exchange needs of the connection that it is on. */
export interface Carrier {
  readonly remoteAddress: string;
  readonly readBuffer: ReadBuffer;
  /** Tells the client to go on with the body that it announced. */
  invite(): void;
  /** Somebody has begun to wait for the body, perhaps long after the head was read. */
  readOn(): void;
}

interface Reading {
  readonly maxBytes: number;
  resolve(bytes: Uint8Array | undefined): void;
  reject(error: RequestAborted): void;
}

const NEVER_COMES = "the body will not come";
/** Bodies that nobody asked for are heard out up to this length, so that the connection can be used again. */
const MAX_UNWANTED_BYTES = 128 * 1024;

/** One request and what becomes of its body. */
export class Exchange implements Request {
  readonly #body: Body | undefined;
  #reading: Reading | undefined;
  #isAnswered = false;
  #isGivenUp = false;

  constructor(
    readonly head: Head,
    private readonly carrier: Carrier,
  ) {
    const { length } = head.framing;
    this.#body = length === 0 ? undefined : new Body(length);
  }

  get method(): string {
    return this.head.method;
  }

  get path(): string {
    return this.head.path;
  }

  get query(): string {
    return this.head.query;
  }

  get headers(): HeaderFields {
    return this.head.framing.headers;
  }

  get remoteAddress(): string {
    return this.carrier.remoteAddress;
  }

  get isAnswered(): boolean {
    return this.#isAnswered;
  }

  /** Whether more of the body has to come before anything else can happen. */
  get isReceiving(): boolean {
    return this.#reading !== undefined || this.#isAnswered;
  }

  /** Whether the client waits to be told that its body is wanted; nobody knows whether it sends it otherwise. */
  get isClientWaiting(): boolean {
    return (
      this.head.framing.expects && this.#body?.hasBegun === false && this.carrier.readBuffer.length === 0
    );
  }

  body(maxBytes: number): Awaitable<Uint8Array | undefined> {
    const body = this.#body;
    if (body === undefined) return new Uint8Array();
    if (this.#isGivenUp) return Promise.reject(new RequestAborted(NEVER_COMES));
    const progress = body.gather(this.carrier.readBuffer, maxBytes);
    if (progress === "done") return body.bytes;
    if (progress === "large") return undefined;
    return new Promise((resolve, reject) => {
      this.#reading = { maxBytes, resolve, reject };
      if (this.isClientWaiting) this.carrier.invite();
      this.carrier.readOn();
    });
  }

  /** Takes more of the body, as far as it has come: for whoever reads it or, once answered, for nobody. */
  advance(): Progress {
    const body = this.#body;
    if (body === undefined) return "done";
    if (this.#isAnswered) return body.discard(this.carrier.readBuffer, MAX_UNWANTED_BYTES);
    if (this.#reading === undefined) return "more";
    const { maxBytes, resolve } = this.#reading;
    const progress = body.gather(this.carrier.readBuffer, maxBytes);
    if (progress === "done" || progress === "large") {
      this.#reading = undefined;
      resolve(progress === "done" ? body.bytes : undefined);
    }
    return progress;
  }

  /** From here on what comes of the body is for nobody. */
  finish(): void {
    this.#isAnswered = true;
    this.giveUp();
  }

  /** Whoever reads the body waits for nothing. */
  giveUp(): void {
    this.#isGivenUp = true;
    this.#reading?.reject(new RequestAborted(NEVER_COMES));
    this.#reading = undefined;
  }
}
