import { readFileSync } from "node:fs";
import type { HttpConnection } from "./connection.ts";
import type { Peer } from "./request.ts";

interface ConnectionLimitOptions {
  readonly maxConnections: number;
  /** 0 means any number. */
  readonly maxConnectionsPerPeer: number;
  /** New TLS connections of a peer in a second, each with a handshake; 0 means any number. */
  readonly maxHandshakesPerSecond: number;
  /** Whether connections whose last request was not authenticated are evicted before all others. */
  readonly evictsUnauthenticatedFirst?: boolean;
  readonly onLimit: (event: LimitEvent) => void;
}

export interface LimitEvent {
  readonly limit: "all" | "peer" | "handshakes";
  /** The first peer that was rejected. */
  readonly peer: string;
  /** False when the limit is first reached, true when it has not been reached for some time. */
  readonly isOver: boolean;
  /** Connections that were closed for newer ones, since the limit was first reached. */
  readonly evicted: number;
  /** Connections that were closed as soon as they were opened. */
  readonly rejected: number;
}

/** Connections above the maximum that trusted peers may open, for health checks. */
const TRUSTED_RESERVE = 16;
/** File descriptors for databases, logs and the trusted reserve. */
const RESERVED_DESCRIPTORS = 64;
const MAX_CONNECTIONS = 20_000;
/** Assumed where the limit cannot be read. */
const TYPICAL_DESCRIPTORS = 1_024;
/** A limit that is not reached for this long is over. */
const QUIET_SECONDS = 10;
/** The time for a client to send the rest of a request or to read a response, before it may be evicted. */
const PATIENCE_SECONDS = 2;
/** The part of the maximum of connections that one search may evict, so that searches are rare. */
const EVICTED_PART = 1 / 64;
/** A browser opens six connections. Addresses with at most eight are alike, so that browsers are not evicted first. */
const FEW_CONNECTIONS = 8;

/** Returns at most `wanted`, and always less than the limit of open files, which accepting a connection needs. */
export function maxConnectionsWithin(
  wanted = MAX_CONNECTIONS,
  descriptors = maxDescriptors() ?? TYPICAL_DESCRIPTORS,
): number {
  return Math.max(1, Math.min(wanted, descriptors - RESERVED_DESCRIPTORS));
}

/** Returns the limit of open files; undefined if it cannot be read. */
export function maxDescriptors(limitsFile = "/proc/self/limits"): number | undefined {
  try {
    const limit = /^Max open files +(\d+|unlimited)/m.exec(readFileSync(limitsFile, "latin1"))?.[1];
    if (limit === undefined) return undefined;
    return limit === "unlimited" ? Infinity : Number(limit);
  } catch {
    return undefined;
  }
}

/** A connection that may be evicted: first the lowest kind, then the greatest weight, then the longest wait. */
interface Candidate {
  readonly connection: HttpConnection;
  /** 0 has sent no request or no authenticated one, 1 is idle or slowed, 2 waits for a slow client. */
  readonly kind: 0 | 1 | 2;
  readonly weight: number;
}

/** The open connections of a server. Decides which new ones are accepted, and which old ones are evicted for them. */
export class ConnectionLimits {
  /** The connections in the order in which they were opened. */
  readonly #connections = new Set<HttpConnection>();
  /** The number of connections by peer. */
  readonly #counts = new Map<string, number>();
  /** The number of new connections by peer in this second. */
  readonly #opened = new Map<string, number>();
  readonly #all: LimitEpisode;
  readonly #peer: LimitEpisode;
  readonly #handshakes: LimitEpisode;
  #second = 0;
  /** The last search that found no connection to close. The next search is in another second, or for a lighter peer. */
  #fruitlessSearch: { readonly second: number; readonly weight: number } | undefined;

  constructor(private readonly options: ConnectionLimitOptions) {
    this.#all = new LimitEpisode("all", options.onLimit);
    this.#peer = new LimitEpisode("peer", options.onLimit);
    this.#handshakes = new LimitEpisode("handshakes", options.onLimit);
  }

  get size(): number {
    return this.#connections.size;
  }

  /** The number since the start. */
  get evicted(): number {
    return this.#all.total.evicted;
  }

  get rejected(): number {
    return this.#all.total.rejected + this.#peer.total.rejected + this.#handshakes.total.rejected;
  }

  [Symbol.iterator](): IterableIterator<HttpConnection> {
    return this.#connections.keys();
  }

  /** Returns whether one more connection of the peer is accepted. May close others for it. */
  accepts(peer: Peer): boolean {
    const reached = peer.clientOf ? undefined : this.#reachedBy(peer);
    if (reached) {
      reached.add(peer, "rejected", 1);
      return false;
    }
    const { maxConnections } = this.options;
    if (this.size < maxConnections || this.#evict(peer)) return true;
    if (peer.clientOf && this.size < maxConnections + TRUSTED_RESERVE) return true;
    this.#all.add(peer, "rejected", 1);
    return false;
  }

  /** Whether a peer that is not trusted has as many connections as it may have. */
  isAtMaximum({ id, clientOf }: Peer): boolean {
    const { maxConnectionsPerPeer: max } = this.options;
    return clientOf === undefined && max > 0 && (this.#counts.get(id) ?? 0) >= max;
  }

  /** Returns the limit that the peer has reached. */
  #reachedBy(peer: Peer): LimitEpisode | undefined {
    const { id } = peer;
    const { maxHandshakesPerSecond } = this.options;
    if (this.isAtMaximum(peer)) return this.#peer;
    if (maxHandshakesPerSecond === 0) return undefined;
    const opened = (this.#opened.get(id) ?? 0) + 1;
    this.#opened.set(id, opened);
    return opened > maxHandshakesPerSecond ? this.#handshakes : undefined;
  }

  add(connection: HttpConnection): void {
    const { id } = connection.peer;
    this.#connections.add(connection);
    this.#counts.set(id, (this.#counts.get(id) ?? 0) + 1);
  }

  delete(connection: HttpConnection): void {
    if (!this.#connections.delete(connection)) return;
    const { id } = connection.peer;
    const count = (this.#counts.get(id) ?? 0) - 1;
    if (count > 0) this.#counts.set(id, count);
    else this.#counts.delete(id);
  }

  onSecond(): void {
    this.#second++;
    this.#opened.clear();
    this.#all.onSecond();
    this.#peer.onSecond();
    this.#handshakes.onSecond();
  }

  /** Closes connections for a new one of the peer, and returns whether it found any. */
  #evict(peer: Peer): boolean {
    const weight = this.#weightOf(peer);
    const last = this.#fruitlessSearch;
    if (last?.second === this.#second && weight >= last.weight) return false;
    const victims = this.#firstToEvict(weight);
    if (victims.length === 0) {
      this.#fruitlessSearch = { second: this.#second, weight };
      return false;
    }
    this.#all.add(peer, "evicted", victims.length);
    for (const { connection } of victims) connection.evict();
    return true;
  }

  #firstToEvict(newWeight: number): readonly Candidate[] {
    const max = Math.ceil(this.options.maxConnections * EVICTED_PART);
    let first: Candidate[] = [];
    for (const connection of this.#connections) {
      const weight = this.#weightOf(connection.peer);
      const candidate = this.#candidate(connection, { weight, newWeight });
      const lowest = first[0]?.kind ?? Infinity;
      if (candidate === undefined || candidate.kind > lowest) continue;
      if (candidate.kind < lowest) first = [];
      first.push(candidate);
    }
    // The weight of a peer falls with each of its connections that is closed.
    const closed = new Map<string, number>();
    const weighted: Candidate[] = [];
    for (const { connection } of inOrder(first, (each) => each.connection.waitingSince)) {
      const { peer } = connection;
      const before = closed.get(peer.id) ?? 0;
      closed.set(peer.id, before + 1);
      const weight = Math.max(0, this.#weightOf(peer) - before);
      const candidate = this.#candidate(connection, { weight, newWeight });
      if (candidate) weighted.push(candidate);
    }
    return inOrder(weighted, ({ weight }) => -weight).slice(0, max);
  }

  /** A peer with more connections than the new one gets no patience: each of its connections could be just in time. */
  #candidate(
    connection: HttpConnection,
    { weight, newWeight }: { readonly weight: number; readonly newWeight: number },
  ): Candidate | undefined {
    if (this.options.evictsUnauthenticatedFirst && !connection.isAuthenticated && !connection.peer.clientOf)
      return { connection, kind: 0, weight: Math.max(weight, FEW_CONNECTIONS) };
    if (!connection.hasReceivedRequest) return { connection, kind: 0, weight };
    if (connection.isEvictable) return { connection, kind: 1, weight };
    const isSlow = weight > newWeight + 1 || this.#second - connection.waitingSince > PATIENCE_SECONDS;
    return connection.isWaitingForClient && isSlow ? { connection, kind: 2, weight } : undefined;
  }

  /** The connections of a load balancer have no weight, because they carry the requests of many clients. */
  #weightOf({ id, clientOf }: Peer): number {
    return clientOf ? 0 : (this.#counts.get(id) ?? 0);
  }
}

/** Sorts by an integer of which few values occur. Equal ones keep their order. */
function inOrder<T>(items: readonly T[], rankOf: (item: T) => number): readonly T[] {
  const groups = [...Map.groupBy(items, rankOf)].toSorted(([a], [b]) => a - b);
  return groups.flatMap(([, group]) => group);
}

/** Reports once when a limit is reached, and once when it is over. */
class LimitEpisode {
  /** The number since the start. */
  readonly total = { evicted: 0, rejected: 0 };
  #current: { readonly peer: string; evicted: number; rejected: number } | undefined;
  #quietSeconds = 0;

  constructor(
    private readonly limit: LimitEvent["limit"],
    private readonly onLimit: ConnectionLimitOptions["onLimit"],
  ) {}

  add(peer: Peer, count: "evicted" | "rejected", connections: number): void {
    this.#quietSeconds = 0;
    this.total[count] += connections;
    const isNew = this.#current === undefined;
    this.#current ??= { peer: peer.id, evicted: 0, rejected: 0 };
    this.#current[count] += connections;
    if (isNew) this.#report(false);
  }

  onSecond(): void {
    if (++this.#quietSeconds < QUIET_SECONDS) return;
    this.#report(true);
    this.#current = undefined;
  }

  #report(isOver: boolean): void {
    if (this.#current) this.onLimit({ limit: this.limit, isOver, ...this.#current });
  }
}
