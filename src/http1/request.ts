import type { Awaitable } from "../domain/awaitable.ts";
import type { HeaderFields } from "./header-fields.ts";

/** A request whose head has come. */
export interface Request {
  readonly method: string;
  /** As it was sent, up to the query: nothing is decoded and no dots are walked. */
  readonly path: string;
  /** As it was sent, without the question mark. */
  readonly query: string;
  readonly headers: HeaderFields;
  /** The address at the other end of the connection. */
  readonly remoteAddress: string;
  /** The whole body, or undefined when it is larger than that. Fails with `RequestAborted` when it never comes. */
  body(maxBytes: number): Awaitable<Uint8Array | undefined>;
}

/** A body ended before its end, or came too late; nobody is left to answer, and nothing is wrong with us. */
export class RequestAborted extends Error {
  override readonly name = "RequestAborted";
}
