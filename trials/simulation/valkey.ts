import type { BanRules } from "../../src/domain/ban-rules.ts";
import {
  type KeySubject,
  charge,
  expire,
  isExpired,
  newQuota,
  NEVER,
  type Quota,
  copyOf,
  merge,
  unban,
} from "../../src/domain/rate-limit.ts";
import type { LimiterConnection } from "../../src/rate-limit/valkey/connection.ts";
import type { GroupReply, KeyHandOver, Replies, RequestGroup } from "../../src/rate-limit/valkey/script.ts";
import type { Process, World } from "./world.ts";

/** A model of the scripts, by the rules of the domain. A test compares both. */
export class ValkeyModel {
  readonly #quotas = new Map<number, Quota>();

  constructor(
    readonly now: () => number,
    private readonly rules: BanRules,
  ) {}

  decide(groups: readonly RequestGroup[], handOvers: readonly KeyHandOver[] = []): Replies {
    for (const each of handOvers) takeOver(this.quotaOf(each.subject.id), each, this.now(), this.rules);
    return { now: this.now(), decided: groups.map((group) => this.#decideGroup(group)) };
  }

  /** Decides one request after the other. */
  #decideGroup({ subject, limits, requests }: RequestGroup): GroupReply {
    const quota = this.quotaOf(subject.id);
    const counts = { allowed: 0, limited: 0, banned: 0, "new ban": 0 };
    for (let i = 0; i < requests.length; i++) counts[charge(quota, limits, this.now(), this.rules)]++;
    const { allowed, limited, "new ban": newBans } = counts;
    return { allowed, limited, isNewBan: newBans > 0, quota: withoutGrace(quota) };
  }

  quota({ id }: KeySubject) {
    const now = this.now();
    const quota = structuredClone(this.#quotas.get(id) ?? newQuota());
    expire(quota, now, this.rules);
    return { quota: isExpired(quota, now) ? undefined : quota, now };
  }

  quotaOf(id: number): Quota {
    const quota = this.#quotas.get(id) ?? newQuota();
    this.#quotas.set(id, quota);
    expire(quota, this.now(), this.rules);
    return quota;
  }

  flush(): void {
    this.#quotas.clear();
  }
}

/** What `take_over` in decide.lua does. Doing it twice changes nothing. */
export function takeOver(
  quota: Quota,
  { quota: known, unbannedAt }: Omit<KeyHandOver, "subject">,
  now: number,
  rules?: BanRules,
): void {
  expire(quota, now, rules);
  if (unbannedAt !== NEVER) unban(quota, unbannedAt);
  merge(quota, copyOf(known), now, rules);
}

/** The quota as the scripts reply it. */
function withoutGrace({ minute, day, ...bans }: Quota): Quota {
  const graceBeganAt = NEVER;
  return { ...bans, minute: { ...minute, graceBeganAt }, day: { ...day, graceBeganAt } };
}

const MAX_DELAY_MS = 5;
const CONNECT_TIMEOUT_MS = 1_000;
const BACKGROUND_TIMEOUT_MS = 500;

/** Valkey and its network: it pauses, servers are cut off from it, and connections break and become silent. */
export class SimulatedValkey {
  readonly #connections = new Set<SimulatedConnection>();
  readonly #cutOffUntil = new Map<string, number>();
  #pausedUntil = 0;
  /** The commands that have arrived during a pause. */
  #waiting: (() => void)[] = [];
  isDown = false;

  constructor(
    readonly world: World,
    readonly model: ValkeyModel,
    readonly onCounted: (
      server: Process,
      groups: readonly RequestGroup[],
      decided: readonly GroupReply[],
    ) => void = () => {},
  ) {}

  /** Pauses; without a length, until `resume` is called. */
  pause(ms = Infinity): void {
    this.#pausedUntil = Math.max(this.#pausedUntil, this.world.now + ms);
    if (ms < Infinity) this.world.schedule(ms, () => this.pauseMs === 0 && this.resume());
  }

  resume(): void {
    this.#pausedUntil = this.world.now;
    for (const command of this.#waiting.splice(0)) command();
  }

  get pauseMs(): number {
    return Math.max(0, this.#pausedUntil - this.world.now);
  }

  /** Cuts a server off. Its messages arrive later. */
  cutOff(server: Process, ms: number): void {
    const until = Math.max(this.#cutOffUntil.get(server.name) ?? 0, this.world.now + ms);
    this.#cutOffUntil.set(server.name, until);
  }

  stop(): void {
    this.isDown = true;
    this.#waiting = [];
    this.breakConnections();
  }

  breakConnections(isBroken: (server: Process) => boolean = () => true): void {
    for (const connection of this.#connections) if (isBroken(connection.server)) connection.break();
  }

  /** Makes connections silent: nothing that is sent on them arrives, and no error is reported. */
  silenceConnections(isSilent: (server: Process) => boolean = () => true): void {
    for (const connection of this.#connections) if (isSilent(connection.server)) connection.isSilent = true;
  }

  /** The time until a message arrives. */
  delayOf(server: Process): number {
    const cutOffMs = (this.#cutOffUntil.get(server.name) ?? 0) - this.world.now;
    return Math.max(0, cutOffMs) + this.world.delay(MAX_DELAY_MS);
  }

  async open(server: Process): Promise<LimiterConnection> {
    const connection = new SimulatedConnection(this, server);
    this.#connections.add(connection);
    const timer = server.setTimeout(() => connection.close(), CONNECT_TIMEOUT_MS);
    try {
      await connection.call(() => {});
    } finally {
      timer.close();
    }
    return connection;
  }

  execute(command: () => void): void {
    if (this.pauseMs > 0) this.#waiting.push(command);
    else command();
  }

  ended(connection: SimulatedConnection): void {
    this.#connections.delete(connection);
  }
}

/** A connection, on which messages arrive in order in both directions. */
class SimulatedConnection implements LimiterConnection {
  isSilent = false;
  #isOpen = true;
  #arrivesAt = 0;
  #repliesAt = 0;
  readonly #pending = new Set<(error: Error) => void>();
  readonly #listeners: (() => void)[] = [];

  constructor(
    private readonly valkey: SimulatedValkey,
    readonly server: Process,
  ) {}

  decide(groups: readonly RequestGroup[], handOvers?: readonly KeyHandOver[]) {
    return this.call(() => {
      const replies = this.valkey.model.decide(groups, handOvers);
      this.valkey.onCounted(this.server, groups, replies.decided);
      return replies;
    });
  }

  quota(subject: KeySubject) {
    return this.#callInTime(() => this.valkey.model.quota(subject));
  }

  time() {
    return this.#callInTime(() => this.valkey.model.now());
  }

  /** Calls a command that no request waits for. */
  #callInTime<T>(command: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      this.server.setTimeout(() => reject(new Error("no reply in time")), BACKGROUND_TIMEOUT_MS);
      this.call(command).then(resolve, reject);
    });
  }

  call<T>(command: () => T): Promise<T> {
    const { world } = this.valkey;
    return new Promise((resolve, reject) => {
      if (!this.#isOpen) return reject(new Error("the connection is closed"));
      this.#pending.add(reject);
      const execute = () => {
        const reply = command();
        this.#repliesAt = Math.max(this.#repliesAt, world.now + this.valkey.delayOf(this.server));
        this.#deliver(this.#repliesAt, () => {
          if (!this.isSilent && this.#pending.delete(reject)) resolve(reply);
        });
      };
      this.#arrivesAt = Math.max(this.#arrivesAt, world.now + this.valkey.delayOf(this.server));
      const arrive = () => {
        if (this.isSilent || !this.#isOpen) return;
        if (this.valkey.isDown) this.break();
        else this.valkey.execute(execute);
      };
      if (this.#arrivesAt === world.now) arrive();
      else world.schedule(this.#arrivesAt - world.now, arrive);
    });
  }

  onEnd(listener: () => void): void {
    this.#listeners.push(listener);
  }

  close(): void {
    this.#isOpen = false;
    this.valkey.ended(this);
    for (const reject of this.#pending) reject(new Error("the connection is closed"));
    this.#pending.clear();
  }

  /** Breaks the connection. The server notices it when it has time. */
  break(): void {
    if (!this.#isOpen) return;
    this.#isOpen = false;
    const { world } = this.valkey;
    this.#deliver(world.now + world.delay(MAX_DELAY_MS), () => {
      this.close();
      for (const listener of this.#listeners) listener();
    });
  }

  #deliver(at: number, work: () => void): void {
    const { world } = this.valkey;
    if (at === this.server.now()) work();
    else world.schedule(at - world.now, work, this.server);
  }
}
