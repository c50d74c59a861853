import {
  type BanRules,
  DAY_MS,
  type Decision,
  DEFAULT_BAN,
  type Limits,
  MINUTE_MS,
} from "../../src/domain/rate-limit.ts";
import { createMemoryRateLimiter } from "../../src/rate-limit/memory/memory-rate-limiter.ts";
import { SharedRateLimiter } from "../../src/rate-limit/valkey/shared-rate-limiter.ts";
import { BanHistory } from "./bans.ts";
import { SimulatedValkey, ValkeyModel } from "./valkey.ts";
import { Process, STARTS_AT, type World } from "./world.ts";

interface Grant {
  readonly at: number;
  readonly server: Server;
  /** The outage in which the server allowed the request from its share. */
  readonly outage?: Outage;
  /** When its window opened, as far as the server knows. */
  opensAt: number;
}

interface Outage {
  readonly server: Server;
  readonly from: number;
  to: number;
  /** The remaining requests of the window, as far as the server knows. */
  readonly left: number;
}

/** The count in Valkey after a batch. */
interface Count {
  readonly at: number;
  readonly openedAt: number;
  readonly used: number;
}

const SERVERS = 3;
const TIMEOUT_MS = 500;
/** The longest wait, including the ticks of the timer, for the previous batch and its own. */
const MAX_WAIT_MS = 2 * (TIMEOUT_MS + 100);
/** How long before an outage a decision of Valkey may arrive too late. */
const REPLIED_MS = 50;
/** The time after an outage within which all servers have reported. */
const REPORTED_MS = 3_000;
/** The time of the first requests. */
const FIRST_MS = 20_000;
const RUN_MS = 220_000;
const MAX_OUTAGE_MS = 90_000;
const NO_BANS = { ...DEFAULT_BAN, strikes: 1_000_000 };
const KEY = { kind: "key", id: 7 } as const;

/**
 * Three servers limit the requests of one key with Valkey. In some worlds Valkey only pauses, for less than the
 * timeout; in some it also pauses for longer. In others it restarts with or without its data, and is flushed;
 * connections break, become silent or are cut off; servers block, are killed and start again, and their clocks are set.
 *
 * The rules are: With short pauses, Valkey makes every decision. If Valkey only pauses, a window allows what was used
 * before, plus the shares of what the servers knew to be left: the limit, and one for each server if all of them have
 * just seen the key. Valkey counts allowed requests once. However outages begin and end, the windows that open while
 * one of Valkey's is open allow less than twice the limit in all, and those that open in an outage allow the limit,
 * apart from rounding. A server that limits the key in an outage has allowed its share of what was left. A request
 * waits for a bounded time, and in an outage not at all.
 */
export function simulateRateLimits(world: World): void {
  new RateLimits(world).play();
}

class RateLimits {
  readonly kind: "pauses" | "standstills" | "faults";
  readonly limit: number;
  readonly limits: Limits;
  readonly windowMs: number;
  readonly ban: BanRules;
  readonly bans: BanHistory;
  readonly valkey: SimulatedValkey;
  readonly grants: Grant[] = [];
  readonly outages: Outage[] = [];
  /** The requests that were sent when an outage began. Valkey counts them when it continues. */
  readonly sent = { allowed: 0, limited: 0, banned: 0 };
  readonly #servers: Server[] = [];
  readonly #windows: { from: number }[] = [];
  readonly #counts: Count[] = [];
  /** The times at which Valkey lost its data, or servers lost what they had not reported. */
  readonly #losses: number[] = [];
  readonly #kills: number[] = [];

  constructor(readonly world: World) {
    const { random } = world;
    this.kind = random.pick(["pauses", "standstills", "faults", "faults"]);
    this.limit = 1 + random.below(20);
    const isDay = random.chance(5);
    this.windowMs = isDay ? DAY_MS : MINUTE_MS;
    this.limits = isDay
      ? { perMinute: 1_000_000, perDay: this.limit }
      : { perMinute: this.limit, perDay: 1_000_000 };
    const lengthMs = random.pick([5_000, 30_000]);
    this.ban = random.chance(2)
      ? NO_BANS
      : { strikes: 1 + random.below(4), graceMs: random.pick([0, 500]), lengthMs, maxLengthMs: 2 * lengthMs };
    this.bans = new BanHistory(world, {
      rules: this.ban,
      windowMs: this.windowMs,
      lateMs: this.kind === "pauses" ? TIMEOUT_MS : MAX_OUTAGE_MS,
      reportedMs: REPORTED_MS,
    });
    const aheadMs = STARTS_AT + random.pick([1_234_567, -10_000_000, 10_000_000]);
    const model = new ValkeyModel(() => Math.floor(world.now + aheadMs), this.ban);
    this.valkey = new SimulatedValkey(world, model, (process, groups, decided) => {
      const { minute, day } = model.quotaOf(KEY.id);
      const { used, openedAt } = isDay ? day : minute;
      const count = { at: world.now, openedAt: openedAt - aheadMs, used };
      this.#count(count);
      const server = this.#servers.find((each) => each.process === process);
      decided.forEach(({ allowed, limited, isNewBan, quota }, i) => {
        for (let rejected = 0; rejected < limited; rejected++) this.bans.rejected();
        if (isNewBan) this.bans.began(quota.bannedAt, quota.bannedUntil - quota.bannedAt);
        const banned = (groups[i]?.requests.length ?? 0) - allowed - limited;
        server?.valkeyDecided({ allowed, limited, banned }, count);
      });
    });
  }

  play(): void {
    const { world, valkey } = this;
    const { random } = world;
    for (let i = 0; i < SERVERS; i++) this.#servers.push(new Server(this, `server ${i + 1}`));
    const times = Array.from({ length: 3 }, () => random.between(FIRST_MS + 5_000, RUN_MS - 80_000));
    const time = () =>
      (times[random.below(times.length)] ?? 0) + random.pick([0, 0, 60_000]) + random.between(-5_000, 10_000);
    for (let burst = 0; burst < 10; burst++) {
      const at = time();
      const lengthMs = random.pick([50, 1_000, 30_000]);
      const only = random.chance(3) ? random.below(SERVERS) : undefined;
      for (let i = random.below(2 * this.limit); i > 0; i--)
        world.schedule(at + random.between(0, lengthMs), () => this.#server(only).receive());
    }
    const faults = this.#faults();
    for (let i = 1 + random.below(5); i > 0 && this.kind !== "pauses"; i--)
      world.schedule(time(), () => faults[this.kind === "faults" ? random.below(faults.length) : 0]?.());
    for (let i = random.below(4); i > 0; i--) world.schedule(time(), () => this.#unban());
    for (let at = random.between(0, 20_000); at < RUN_MS; at += random.between(1_500, 40_000))
      world.schedule(at, () => valkey.pauseMs === 0 && valkey.pause(random.between(0, 400)));
    world.run(RUN_MS + 2 * MAX_OUTAGE_MS);
    for (const server of this.#servers)
      world.check(!server.isOutage, `${server.process.name} does not use Valkey again`);
    this.#judgeWindows();
    if (this.kind === "pauses") world.check(this.bans.isEveryBanReported, "no server reports a ban");
    if (this.kind !== "faults") this.#judgeCounts();
  }

  #server(i = this.world.random.below(SERVERS)): Server {
    const server = this.#servers[i];
    if (server === undefined) throw new RangeError(`there is no server ${i}`);
    return server;
  }

  #unban(): void {
    const servers = [...this.#servers];
    this.bans.unban(
      servers.map(({ process }) => process),
      (process, agoMs) => servers.find((each) => each.process === process)?.unban(agoMs),
    );
  }

  #faults(): readonly (() => void)[] {
    const { world, valkey } = this;
    const { random } = world;
    const outageMs = () => random.pick([random.between(0, 3_000), random.between(0, MAX_OUTAGE_MS)]);
    const lose = () => {
      world.note("Valkey loses its data");
      valkey.model.flush();
      this.#losses.push(world.now);
      this.bans.lost();
    };
    const toServer = (what: string, fault: (server: Process) => void) => () => {
      const { process } = this.#server();
      world.note(process.name, what);
      fault(process);
    };
    return [
      () => {
        valkey.pause(outageMs());
        world.note("Valkey stands still for", valkey.pauseMs);
        for (let i = random.below(3 * this.limit); i > 0; i--)
          world.schedule(valkey.pauseMs + random.between(-600, 100), () => this.#server().receive());
      },
      toServer("is cut off", (server) => valkey.cutOff(server, outageMs())),
      toServer("loses its connections", (server) => valkey.breakLinks((each) => each === server)),
      toServer("has silent connections", (server) => valkey.silenceLinks((each) => each === server)),
      () => {
        world.note("Valkey stops");
        valkey.stop();
        if (random.chance(2)) lose();
        world.schedule(outageMs(), () => {
          world.note("Valkey starts");
          valkey.isDown = false;
        });
      },
      lose,
      () => {
        const i = random.below(SERVERS);
        const { process } = this.#server(i);
        world.note(process.name, "is killed");
        process.kill();
        this.#server(i).changed("available");
        this.#kills.push(world.now);
        this.#servers[i] = new Server(this, process.name);
      },
      () => this.#server().block(random.between(0, 3_000)),
      () => void (this.#server().process.wallStepMs += random.between(-100_000, 100_000)),
    ];
  }

  /** Records a count. A report may open Valkey's window earlier than it was. */
  #count(count: Count): void {
    if (count.used === 0) return;
    this.#counts.push(count);
    const { at, openedAt } = count;
    const last = this.#windows.at(-1);
    const isLast =
      last && at < last.from + this.windowMs && !this.#losses.some((lostAt) => lostAt > last.from);
    if (isLast === true) last.from = openedAt;
    else this.#windows.push({ from: openedAt });
  }

  #given(from: number, to: number): readonly Grant[] {
    return this.grants.filter(({ at }) => at >= from && at < to);
  }

  #judgeWindows(): void {
    const { limit, windowMs, world } = this;
    let before = -Infinity;
    for (const window of this.#windows) {
      // A report may open the window before the last one has closed.
      const from = Math.max(window.from, before);
      const to = Math.min(window.from + windowMs, this.#losses.find((at) => at > from) ?? Infinity);
      before = to;
      this.#judgeWindow(from, to);
    }
    for (const { opensAt: from, outage: of } of this.grants) {
      const isOpen = this.#windows.some((window) => window.from <= from && from < window.from + windowMs);
      if (!of || isOpen) continue;
      const isIn = ({ opensAt, outage }: Grant) =>
        outage && outage.from <= from && outage.to > from && opensAt >= from && opensAt < from + windowMs;
      const given = this.grants.filter(isIn).length;
      const most = Math.max(limit + SERVERS, SERVERS * this.#share) + this.#lostShares(from, from + windowMs);
      world.check(
        given <= most,
        `windows that open in an outage, from ${from} on, have ${given} of ${limit}`,
      );
    }
  }

  #judgeWindow(from: number, to: number): void {
    const { limit, world } = this;
    const outages = this.outages.filter((outage) => outage.from < to && outage.to > from);
    const judge = (given: number, most: number) =>
      world.check(given <= most, `Valkey's window from ${from} has ${given} of ${limit}, more than ${most}`);
    if (outages.length === 0) return judge(this.#given(from, to).length, limit);

    const isIn = ({ at, outage, opensAt }: Grant) =>
      outage ? opensAt >= from && opensAt < to : at >= from && at < to;
    const twice = Math.max(limit + (SERVERS - 1) * this.#share, limit + SERVERS);
    judge(this.grants.filter(isIn).length, twice + this.#lostShares(from, to));

    // After an outage, servers may know of different windows.
    const isOnce = this.outages.every((outage) => outage.from >= from || outage.to < from - this.windowMs);
    const isOnceEach = new Set(outages.map(({ server }) => server)).size === outages.length;
    if (this.kind !== "standstills" || !isOnce || !isOnceEach) return;
    const before = this.#given(from, Math.min(...outages.map((outage) => outage.from))).length;
    const shares = outages.reduce((sum, { left }) => sum + Math.ceil(left / SERVERS), 0);
    const endsAt = Math.min(...outages.map((outage) => outage.to));
    const isOne = outages.length === SERVERS && outages.every((outage) => outage.from < endsAt);
    // A server without an outage at that time asks Valkey before the others have reported.
    judge(this.#given(from, to).length, isOne ? Math.max(limit, before + shares) : limit + shares);
  }

  /** The requests that killed servers have allowed without reporting them. */
  #lostShares(from: number, to: number): number {
    const kills = this.#kills.filter((at) => at >= from - this.windowMs && at < to).length;
    return kills * (this.#share + 1);
  }

  /** The largest share of a server in a window that begins in an outage. */
  get #share(): number {
    return Math.ceil(this.limit / SERVERS);
  }

  /** Valkey may also have counted requests that a server rejected and, after its window, those that one allowed. */
  #judgeCounts(): void {
    const isOver = this.outages.some(({ from, to }) => to - from >= this.windowMs - TIMEOUT_MS);
    const late = this.sent.limited + this.sent.banned + (isOver ? this.sent.allowed : 0);
    for (const { at, openedAt, used } of this.#counts) {
      const isNear = (outage: Outage) => outage.from - REPLIED_MS <= at && outage.to + REPORTED_MS > at;
      if (this.outages.some(isNear)) continue;
      const before = this.#windows.findLast((window) => window.from < openedAt)?.from ?? -Infinity;
      // Requests that were allowed in a window that closed in the outage are not reported.
      const isCounted = ({ opensAt, outage }: Grant) => !outage || opensAt + this.windowMs > outage.to;
      const least = this.#given(Math.max(openedAt, before + this.windowMs), at).filter(isCounted).length;
      // Valkey counts requests that were sent before an outage after it, and learns late when a window was opened.
      const opened = this.outages.filter((outage) => outage.from < openedAt && outage.to > openedAt);
      const from = Math.min(openedAt - TIMEOUT_MS, ...opened.map((outage) => outage.from));
      const most = late + this.grants.filter((grant) => grant.at >= from && grant.at <= at).length;
      this.world.check(
        least <= used && used <= most,
        `at ${at}, Valkey has counted ${used}, not ${least} to ${most}`,
      );
    }
  }

  /** Whether no server is or has just been in an outage. */
  isCalm(at: number): boolean {
    return this.outages.every(({ to }) => to + REPORTED_MS <= at);
  }

  judgeWait(ms: number): void {
    this.world.check(ms <= MAX_WAIT_MS, `a request waited for ${ms} ms`);
  }

  /** Checks a server that limits the key without Valkey. A window has one share, in however many outages. */
  judgeShare(server: Server): void {
    const since = this.world.now - this.windowMs - REPLIED_MS;
    const recent = this.grants.filter(({ at }) => at > since);
    const own = recent.filter((grant) => grant.server === server && grant.outage);
    const counted = this.#counts.filter(({ at }) => at > since).map(({ used }) => used);
    const left = this.limit - Math.max(recent.length - own.length, ...counted);
    this.world.check(
      own.length * SERVERS >= left,
      () => `${server.process.name} gave ${own.length} of ${left} that were left`,
    );
  }
}

class Server {
  readonly process: Process;
  readonly #game: RateLimits;
  readonly #limiter: SharedRateLimiter;
  #outage: Outage | undefined;
  #hasFailed = false;
  #blockedMs = 0;
  /** The decisions of Valkey minus those that clients received. */
  readonly #undelivered = { allowed: 0, limited: 0, banned: 0 };
  /** The last count of Valkey for this server. */
  #counted: Count = { at: 0, openedAt: -Infinity, used: 0 };
  #known = this.#counted;

  constructor(game: RateLimits, name: string) {
    this.process = new Process(game.world, name);
    this.#game = game;
    const { clock } = this.process;
    const ban = () => game.ban;
    this.#limiter = new SharedRateLimiter(
      {
        clock,
        scheduler: this.process,
        ban,
        local: createMemoryRateLimiter({ clock, ban, scheduler: this.process, flushEveryMs: DAY_MS }),
        timeoutMs: TIMEOUT_MS,
        serverCount: () => SERVERS,
        onBan: (_, { bannedAt }) => game.bans.told(bannedAt),
        onStateChange: (state) => this.changed(state),
      },
      {
        open: () => game.valkey.open(this.process),
        isCluster: false,
        maxBatchSize: 4,
        maxConcurrentBatches: 1,
      },
    );
    this.changed("unavailable");
    this.#hasFailed = false;
    void this.#limiter.start().then(() => {
      if (!this.#hasFailed) this.changed("available");
    });
  }

  get isOutage(): boolean {
    return this.#outage !== undefined;
  }

  changed(state: "available" | "unavailable"): void {
    const { world, outages, limit, windowMs } = this.#game;
    world.note(this.process.name, "says that Valkey is", state);
    this.#hasFailed = true;
    if (state === "unavailable" && this.#outage === undefined) {
      const isOpen = world.now < this.#known.openedAt + windowMs;
      const left = isOpen ? Math.max(0, limit - this.#known.used) : limit;
      this.#outage = { server: this, from: world.now, to: Infinity, left };
      outages.push(this.#outage);
    } else if (state === "available" && this.#outage) {
      this.#outage.to = world.now;
      this.#outage = undefined;
    }
  }

  block(ms: number): void {
    this.#blockedMs += ms;
    this.process.block(ms);
  }

  valkeyDecided({ allowed, limited, banned }: Record<Decision["outcome"], number>, count: Count): void {
    this.#undelivered.allowed += allowed;
    this.#undelivered.limited += limited;
    this.#undelivered.banned += banned;
    this.#counted = count;
  }

  unban(agoMs: number): void {
    void this.#limiter.unban(KEY, agoMs);
  }

  /** Receives a request, which waits until the process has time. */
  receive(): void {
    this.#game.world.schedule(0, () => this.#handle(), this.process);
  }

  #handle(): void {
    const { world, limits } = this.#game;
    const [startedAt, blockedMs, wasOutage] = [world.now, this.#blockedMs, this.isOutage];
    const result = this.#limiter.decide(KEY, limits);
    if (!(result instanceof Promise)) return this.#judge(result, true);
    world.check(!wasOutage, "a request waits in an outage");
    void result.then((decision) => {
      this.#game.judgeWait(world.now - startedAt - (this.#blockedMs - blockedMs));
      if (!this.isOutage) this.#known = this.#counted;
      else this.#game.sent[decision.outcome]++;
      this.#judge(decision, this.isOutage);
    });
  }

  #judge({ outcome }: Decision, isLocal: boolean): void {
    const { world, grants, kind, bans } = this.#game;
    world.note(this.process.name, outcome);
    const at = isLocal ? world.now : this.#counted.at;
    bans.judge({
      server: this.process,
      outcome,
      at,
      outageAt: this.#outage?.from,
      isCalm: this.#game.isCalm(at),
    });
    if (this.#outage) {
      world.check(kind !== "pauses", "a short pause is an outage");
      if (outcome === "allowed") this.#allowedHere(this.#outage);
      else if (outcome === "limited") this.#game.judgeShare(this);
      return;
    }
    if (outcome === "allowed") grants.push({ server: this, at, opensAt: at });
    if (outcome === "allowed" || kind === "pauses")
      world.check(this.#undelivered[outcome]-- > 0, "a decision is not Valkey's");
  }

  #allowedHere(outage: Outage): void {
    const { world, grants, windowMs } = this.#game;
    const grant = { server: this, at: world.now, outage, opensAt: world.now };
    grants.push(grant);
    void this.#limiter.quota(KEY).then((quota) => {
      const { openedAt = NaN } = (windowMs === DAY_MS ? quota?.day : quota?.minute) ?? {};
      grant.opensAt = openedAt - this.process.clock.stepMs - STARTS_AT;
    });
  }
}
