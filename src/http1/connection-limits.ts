import { readFileSync } from "node:fs";
import type { HttpConnection } from "./connection.ts";

/** The other end of a connection, as the limits see it. */
export interface Peer {
  /** Connections with the same id count together: those of one address or one network. */
  readonly id: string;
  /** A load balancer: it may open any number of connections, and a few more than the maximum. */
  readonly isTrusted: boolean;
}

interface ConnectionLimitOptions {
  readonly maxConnections: number;
  /** 0 means any number. */
  readonly maxConnectionsPerPeer: number;
  /** New connections of a peer in a second; 0 means any number. */
  readonly maxOpenedPerSecond: number;
  readonly onLimit: (event: LimitEvent) => void;
}

export interface LimitEvent {
  readonly limit: "all" | "peer";
  /** Of the first peer that was rejected. */
  readonly peer: string;
  /** False when the limit is first reached, true when it has not been reached for some time. */
  readonly isOver: boolean;
  /** Connections that were closed for newer ones, since the limit was first reached. */
  readonly evicted: number;
  /** Connections that were closed as soon as they were opened. */
  readonly rejected: number;
}

/** Connections above the maximum for trusted peers, so that health checks get through. */
const TRUSTED_RESERVE = 16;
/** File descriptors for databases, logs and the trusted reserve. */
const RESERVED_DESCRIPTORS = 64;
const MAX_CONNECTIONS = 20_000;
/** Assumed where the limit cannot be read. */
const TYPICAL_DESCRIPTORS = 1_024;
/** A limit that is not reached for this long is over. */
const QUIET_SECONDS = 10;
/** For a client to send the rest of a request, or to read a response. Then another may have its place. */
const PATIENCE_SECONDS = 2;
/** One search for idle connections closes this part of all connections, so that a search is rare. */
const EVICTED_PART = 1 / 64;

/** At most `wanted`, and always less than the limit of open files: a server without descriptors cannot accept. */
export function maxConnectionsWithin(
  wanted = MAX_CONNECTIONS,
  descriptors = maxDescriptors() ?? TYPICAL_DESCRIPTORS,
): number {
  return Math.max(1, Math.min(wanted, descriptors - RESERVED_DESCRIPTORS));
}

/** The limit of open files; undefined where the system does not tell. */
export function maxDescriptors(): number | undefined {
  try {
    const limit = /^Max open files +(\d+|unlimited)/m.exec(readFileSync("/proc/self/limits", "latin1"))?.[1];
    if (limit === undefined) return undefined;
    return limit === "unlimited" ? Infinity : Number(limit);
  } catch {
    return undefined;
  }
}

interface LimitReached {
  readonly peer: Peer;
  readonly second: number;
}

interface PeerConnections extends Peer {
  count: number;
}

/** The open connections of a server. Decides which new ones to accept, and which old ones make room for them. */
export class ConnectionLimits {
  /** In the order in which they were opened. */
  readonly #connections = new Map<HttpConnection, PeerConnections>();
  readonly #peers = new Map<string, PeerConnections>();
  /** By peer, in this second. */
  readonly #opened = new Map<string, number>();
  readonly #all: LimitEpisode;
  readonly #peer: LimitEpisode;
  /** Since the start. */
  evicted = 0;
  rejected = 0;
  #second = 0;
  /** When a search found no connection to close: the next one is in another second, or for a lighter peer. */
  #fruitlessSearch = { second: -1, weight: 0 };

  constructor(private readonly options: ConnectionLimitOptions) {
    this.#all = new LimitEpisode("all", options.onLimit);
    this.#peer = new LimitEpisode("peer", options.onLimit);
  }

  get size(): number {
    return this.#connections.size;
  }

  [Symbol.iterator](): IterableIterator<HttpConnection> {
    return this.#connections.keys();
  }

  /** Whether one more connection of the peer is accepted. May close others for it. */
  accepts(peer: Peer): boolean {
    const { maxConnections } = this.options;
    if (!peer.isTrusted && this.#hasEnough(peer)) {
      this.rejected++;
      this.#peer.add("rejected", 1, { peer, second: this.#second });
      return false;
    }
    if (this.size < maxConnections) return true;
    const evicted = this.#evict(peer);
    const isAccepted = evicted > 0 || (peer.isTrusted && this.size < maxConnections + TRUSTED_RESERVE);
    if (isAccepted) return true;
    this.rejected++;
    this.#all.add("rejected", 1, { peer, second: this.#second });
    return false;
  }

  #hasEnough({ id }: Peer): boolean {
    const { maxConnectionsPerPeer, maxOpenedPerSecond } = this.options;
    const count = this.#peers.get(id)?.count ?? 0;
    if (maxConnectionsPerPeer > 0 && count >= maxConnectionsPerPeer) return true;
    if (maxOpenedPerSecond === 0) return false;
    const opened = (this.#opened.get(id) ?? 0) + 1;
    this.#opened.set(id, opened);
    return opened > maxOpenedPerSecond;
  }

  add(connection: HttpConnection, { id, isTrusted }: Peer): void {
    const peer = this.#peers.get(id) ?? { id, isTrusted, count: 0 };
    if (peer.count++ === 0) this.#peers.set(id, peer);
    this.#connections.set(connection, peer);
  }

  delete(connection: HttpConnection): void {
    const peer = this.#connections.get(connection);
    if (peer === undefined) return;
    this.#connections.delete(connection);
    if (--peer.count === 0) this.#peers.delete(peer.id);
  }

  onSecond(): void {
    this.#second++;
    this.#opened.clear();
    this.#all.end(this.#second);
    this.#peer.end(this.#second);
  }

  /** Closes connections without a request; if there are none, idle ones; if there are none, those of slow clients. */
  #evict(peer: Peer): number {
    const weight = peer.isTrusted ? 0 : (this.#peers.get(peer.id)?.count ?? 0);
    const { second, weight: lightest } = this.#fruitlessSearch;
    if (second === this.#second && weight >= lightest) return 0;
    const victims = this.#oldest((connection) => !connection.hasReceivedRequest);
    if (victims.length === 0) victims.push(...this.#oldest((connection) => connection.isEvictable));
    if (victims.length === 0) victims.push(...this.#oldest((connection) => this.#isSlow(connection, weight)));
    if (victims.length === 0) this.#fruitlessSearch = { second: this.#second, weight };
    else this.#all.add("evicted", victims.length, { peer, second: this.#second });
    this.evicted += victims.length;
    for (const connection of victims) connection.evict();
    return victims.length;
  }

  /** A peer with more connections than the new one has after it gets no patience: it could always be in time. */
  #isSlow(connection: HttpConnection, newWeight: number): boolean {
    if (!connection.isWaitingForClient) return false;
    const peer = this.#connections.get(connection);
    const isHeavier = peer !== undefined && weightOf(peer) > newWeight + 1;
    return isHeavier || this.#second - connection.waitingSince > PATIENCE_SECONDS;
  }

  /** Of the peer with the most connections, those that have waited longest. */
  #oldest(isCandidate: (connection: HttpConnection) => boolean): HttpConnection[] {
    let heaviest: PeerConnections | undefined;
    let since = Infinity;
    for (const [connection, peer] of this.#connections) {
      const isHeavier = heaviest === undefined || weightOf(peer) > weightOf(heaviest);
      const isOlder = peer === heaviest && connection.waitingSince < since;
      if (!(isHeavier || isOlder) || !isCandidate(connection)) continue;
      heaviest = peer;
      since = connection.waitingSince;
    }
    const max = Math.ceil(this.options.maxConnections * EVICTED_PART);
    const oldest: HttpConnection[] = [];
    for (const [connection, peer] of this.#connections) {
      if (oldest.length === max) break;
      if (peer !== heaviest || connection.waitingSince !== since) continue;
      if (isCandidate(connection)) oldest.push(connection);
    }
    return oldest;
  }
}

/** A load balancer's connections carry the requests of many clients. */
function weightOf({ isTrusted, count }: PeerConnections): number {
  return isTrusted ? 0 : count;
}

/** Reports once when a limit is reached, and once when it is over. */
class LimitEpisode {
  #current: { readonly peer: string; evicted: number; rejected: number } | undefined;
  #lastSecond = 0;

  constructor(
    private readonly limit: LimitEvent["limit"],
    private readonly onLimit: ConnectionLimitOptions["onLimit"],
  ) {}

  add(count: "evicted" | "rejected", connections: number, { peer, second }: LimitReached): void {
    this.#lastSecond = second;
    const isNew = this.#current === undefined;
    this.#current ??= { peer: peer.id, evicted: 0, rejected: 0 };
    this.#current[count] += connections;
    if (isNew) this.#report(false);
  }

  end(second: number): void {
    if (second - this.#lastSecond < QUIET_SECONDS) return;
    this.#report(true);
    this.#current = undefined;
  }

  #report(isOver: boolean): void {
    if (this.#current) this.onLimit({ limit: this.limit, isOver, ...this.#current });
  }
}
