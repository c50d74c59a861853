import { connect, type Socket } from "node:net";
import type { Target } from "./attack.ts";

export interface ConnectionOptions {
  /** How many connections are open at once. */
  readonly count: number;
  /** Connections from one loopback address; the next ones come from the next address of 127.0.0.0/8. */
  readonly perAddress: number;
  /** Whether a connection that ends is replaced by a new one: from its address, or from one that was not used yet. */
  readonly reconnects: boolean | "from a new address";
  /** Whether the attack begins when all connections are open: an attacker who already sends is slow to open more. */
  readonly opensAllFirst?: boolean;
  /** Is called when all connections that are open attack. */
  onBegin?(): void;
  /** Attacks on one connection. */
  onOpen(socket: Socket): void;
}

const OPENED_AT_ONCE = 50;
const PAUSE_MS = 5;
/** A server that closes connections at once is not asked again at once. */
const RECONNECT_MS = 100;

/** Holds connections open until the signal aborts. */
export async function holdConnections(target: Target, options: ConnectionOptions, signal: AbortSignal) {
  const sockets = new Set<Socket>();
  let isAttacking = options.opensAllFirst !== true;
  let nextNumber = options.count;
  const open = (number: number) => {
    if (signal.aborted) return;
    const { host, port } = target;
    const localAddress = addressOf(Math.floor(number / options.perAddress));
    const socket = connect({ host, port, localAddress });
    sockets.add(socket);
    socket.on("connect", () => isAttacking && options.onOpen(socket));
    socket.on("error", () => {});
    socket.on("close", () => {
      sockets.delete(socket);
      if (!options.reconnects) return;
      setTimeout(() => open(options.reconnects === true ? number : nextNumber++), RECONNECT_MS);
    });
  };
  for (let number = 0; number < options.count && !signal.aborted; number++) {
    open(number);
    if (number % OPENED_AT_ONCE === 0) await Bun.sleep(PAUSE_MS);
  }
  if (options.opensAllFirst) {
    isAttacking = true;
    for (const socket of sockets) if (!socket.connecting) options.onOpen(socket);
  }
  options.onBegin?.();
  await new Promise<void>((resolve) => {
    if (signal.aborted) resolve();
    signal.addEventListener("abort", () => resolve());
  });
  for (const socket of sockets) socket.destroy();
}

/** 127.0.0.2 and on, so that a client at 127.0.0.1 is nobody's neighbour. */
export function addressOf(index: number): string {
  const host = index + 2;
  return `127.${host >> 16}.${(host >> 8) & 255}.${host & 255}`;
}

/** Writes the text again and again, as fast as the server reads, and drops every response. */
export function repeatText(socket: Socket, text: string): void {
  const write = () => {
    while (socket.writable && socket.write(text));
  };
  socket.on("data", () => {});
  socket.on("drain", write);
  write();
}
