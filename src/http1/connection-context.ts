import type { RequestHandler } from "./request.ts";
import type { Turns } from "./turns.ts";
import type { Writable } from "./write-buffer.ts";

/** The server's end of a TCP connection. */
export interface Socket extends Writable {
  /** Undefined if the client disconnected before the connection was accepted. */
  readonly remoteAddress: string | undefined;
  pause(): void;
  resume(): void;
  /** Closes the sending side only. */
  shutdown(): void;
  end(): void;
  /** Closes at once, without sending what is pending. */
  terminate(): void;
}

/** Bytes of all connections since the start, as HTTP: without those that TLS adds. */
export interface Traffic {
  bytesReceived: number;
  bytesSent: number;
}

/** What all connections of a server share. */
export interface ConnectionContext {
  readonly handler: RequestHandler;
  readonly uptimeSeconds: number;
  /** Header lines of every response, such as `Date`. */
  readonly commonLines: string;
  /** Whether every connection closes after its next response. */
  readonly isShuttingDown: boolean;
  readonly turns: Turns;
  readonly traffic: Traffic;
}
