import { Unavailable } from "../../src/api/errors.ts";
import { type BanRules, DEFAULT_BAN } from "../../src/domain/ban-rules.ts";
import type { Decision, Limits, Quota } from "../../src/domain/rate-limit.ts";
import { DAY_MS, MINUTE_MS } from "../../src/text/time-units.ts";
import { ValkeyKeyLimiter } from "../../src/rate-limit/valkey/valkey-key-limiter.ts";
import { SimulatedDatabase } from "./database.ts";
import { SimulatedValkey, ValkeyModel } from "./valkey.ts";
import { Process, Remote, STARTS_AT, type World } from "./world.ts";

type Counts = Record<Decision["outcome"], number>;

interface Ban {
  readonly from: number;
  readonly to: number;
}

interface Unban {
  readonly at: number;
  /** When the last server learned of it. */
  learnedAt: number;
}

const SERVERS = 3;
const TIMEOUT_MS = 500;
const DATABASE_TIMEOUT_MS = 2_000;
/** The longest wait, including the ticks of the timer: for the previous batch and its own, of each. */
const MAX_WAIT_MS = 2 * (TIMEOUT_MS + 100 + DATABASE_TIMEOUT_MS);
/** The tolerance of times that were handed over: clocks are read to the millisecond, and replies take some. */
const NEAR_MS = 1_500;
/** The tolerance of times that clients see, which are whole seconds. */
const SHOWN_NEAR_MS = NEAR_MS + 1_000;
/** The time within which servers learn of an unban. */
const LEARNED_MS = 1_000;
/** The time after its recovery in which a server uses Valkey again. */
const RECOVERY_MS = 3_000;
const FIRST_MS = 20_000;
const RUN_MS = 220_000;
const MAX_OUTAGE_MS = 90_000;
const NO_BANS = { ...DEFAULT_BAN, strikes: 1_000_000 };
const KEY = { kind: "key", id: 7 } as const;

/**
 * Three servers limit the requests of one key with Valkey, and with PostgreSQL while Valkey is unavailable. In some
 * worlds Valkey only pauses, for less than the timeout. In others it also stands still, restarts with or without its
 * data, and is flushed; connections break, become silent or are cut off; PostgreSQL is unavailable and loses replies;
 * servers block, are killed and start again, and their clocks are set. In some worlds the client stays with one server.
 *
 * The rules are: With short pauses, Valkey makes every decision. Whoever decides has counted the request. In a window
 * of its own, each of the two allows the limit, so both allow twice the limit. Neither counts what was not allowed. A
 * client that stays with one server is allowed the limit, however often Valkey comes and goes, and no more besides than
 * the requests whose outcome was unknown as it did, unless the server is killed. A server applies a ban that it knows
 * until it ends or is lifted, and none that was lifted. No request waits for long. What is allowed is not judged after
 * Valkey has lost its data unnoticed, or with a server that knew them and was killed.
 */
export function simulateRateLimits(world: World): void {
  new RateLimits(world).play();
}

/** One of the two that count. */
class Engine {
  /** The requests that it has allowed in its window, which closes then. */
  #window = { allowed: 0, closesAt: -Infinity };
  readonly #allowedAt: number[] = [];

  constructor(
    readonly name: string,
    private readonly game: RateLimits,
  ) {}

  lose(): void {
    this.#window = { allowed: 0, closesAt: -Infinity };
  }

  /** Judges requests that were counted together. `openedAt` is when the window opened, as the engine sees it. */
  counted({ allowed }: Pick<Counts, "allowed">, used: number, openedAt: number): void {
    const { world, limit, windowMs, engines } = this.game;
    for (let i = 0; i < allowed; i++) this.#allowedAt.push(world.now);
    if (used === 0) return;
    if (world.now >= this.#window.closesAt - 2) this.#window = { allowed: 0, closesAt: Infinity };
    this.#window.closesAt = Math.min(this.#window.closesAt, openedAt + windowMs);
    this.#window.allowed += allowed;
    world.check(
      this.#window.allowed <= limit,
      () => `${this.name} has allowed ${this.#window.allowed} of ${limit} in a window`,
    );
    const most = engines.reduce((sum, each) => sum + each.#since(openedAt - NEAR_MS), 0);
    world.check(used <= most, () => `${this.name} has counted ${used}, and ${most} were allowed`);
  }

  #since(from: number): number {
    return this.#allowedAt.filter((at) => at >= from).length;
  }
}

class RateLimits {
  readonly kind: "pauses" | "standstills" | "faults";
  /** Whether the client stays with the first server. */
  readonly stays: boolean;
  readonly limit: number;
  readonly limits: Limits;
  readonly windowMs: number;
  readonly ban: BanRules;
  readonly valkey: SimulatedValkey;
  readonly database: SimulatedDatabase;
  readonly remote: Remote;
  readonly engines: readonly [Engine, Engine];
  readonly bans: Ban[] = [];
  readonly unbans: Unban[] = [];
  /** The requests that were allowed, by when their window opened. */
  readonly allowed: { readonly opensAt: number }[] = [];
  /** Whether Valkey lost its data while no server noticed. */
  isFlushed = false;
  /** Whether Valkey lost its data with its connections, so that each server hands over what it knows. */
  isLost = false;
  isKilled = false;
  /** The requests whose outcome their server did not know when another engine took over. */
  unknown = 0;
  readonly #servers: Server[] = [];

  constructor(readonly world: World) {
    const { random } = world;
    this.kind = random.pick(["pauses", "standstills", "faults", "faults"]);
    this.stays = random.chance(3);
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
    const clocks = [1_234_567, -10_000_000, 10_000_000] as const;
    const [valkeyAheadMs, databaseAheadMs] = [random.pick(clocks), random.pick(clocks)];
    const now = (aheadMs: number) => () => Math.floor(STARTS_AT + world.now + aheadMs);
    const [inValkey, inDatabase] = [new Engine("Valkey", this), new Engine("PostgreSQL", this)];
    this.engines = [inValkey, inDatabase];
    const openedAt = (quota: Quota, aheadMs: number) => this.windowOf(quota).openedAt - STARTS_AT - aheadMs;
    const model = new ValkeyModel(now(valkeyAheadMs), this.ban);
    this.valkey = new SimulatedValkey(world, model, (process, groups, decided) => {
      decided.forEach(({ allowed, limited, isNewBan, quota }, i) => {
        const banned = (groups[i]?.requests.length ?? 0) - allowed - limited;
        inValkey.counted({ allowed }, this.windowOf(quota).used, openedAt(quota, valkeyAheadMs));
        if (isNewBan) this.bans.push({ from: world.now, to: world.now + quota.bannedUntil - quota.bannedAt });
        this.#serverOf(process)?.counted({ allowed, limited, banned });
      });
    });
    this.remote = new Remote(world, 5, DATABASE_TIMEOUT_MS);
    this.database = new SimulatedDatabase({
      now: now(databaseAheadMs),
      rules: this.ban,
      call: (server, work) => this.remote.call(server, work),
      onCounted: (process, { decision: { outcome }, quota }, isNewBan) => {
        const { bannedAt, bannedUntil } = quota;
        const counts = { allowed: 0, limited: 0, banned: 0, [outcome]: 1 };
        const opensAt = openedAt(quota, databaseAheadMs);
        inDatabase.counted(counts, this.windowOf(quota).used, opensAt);
        if (isNewBan) this.bans.push({ from: world.now, to: world.now + bannedUntil - bannedAt });
        this.#serverOf(process)?.counted(counts);
      },
    });
  }

  /** Whether something was lost that nobody could hand over. */
  get isForgotten(): boolean {
    return this.isFlushed || (this.isLost && this.isKilled);
  }

  windowOf({ minute, day }: Quota) {
    return this.windowMs === DAY_MS ? day : minute;
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
      const only = this.stays ? 0 : random.chance(3) ? random.below(SERVERS) : undefined;
      for (let i = random.below(2 * this.limit); i > 0; i--)
        world.schedule(at + random.between(0, lengthMs), () => this.#server(only).receive());
    }
    const faults = this.#faults();
    for (let i = 1 + random.below(5); i > 0 && this.kind !== "pauses"; i--)
      world.schedule(time(), () => faults[this.kind === "faults" ? random.below(faults.length) : 0]?.());
    for (let i = random.below(4); i > 0; i--) world.schedule(time(), () => this.#unban());
    for (let at = random.between(0, 20_000); at < RUN_MS; at += random.between(1_500, 40_000))
      world.schedule(at, () => valkey.pauseMs === 0 && valkey.pause(random.between(0, 400)));
    world.run(RUN_MS + 2 * MAX_OUTAGE_MS + RECOVERY_MS);
    for (const { isOutage, process } of this.#servers)
      world.check(!isOutage, `${process.name} does not use Valkey again`);
    this.#judgeWindows();
  }

  #serverOf(process: Process): Server | undefined {
    return this.#servers.find((each) => each.process === process);
  }

  #server(i = this.world.random.below(SERVERS)): Server {
    const server = this.#servers[i];
    if (server === undefined) throw new RangeError(`there is no server ${i}`);
    return server;
  }

  #unban(): void {
    const { world } = this;
    const unban: Unban = { at: world.now, learnedAt: Infinity };
    world.note("unban");
    this.unbans.push(unban);
    for (const server of this.#servers) {
      const learn = () => void server.learn(unban);
      world.schedule(world.random.between(0, LEARNED_MS), learn, server.process);
    }
  }

  /** Whether every server that runs has learned of the unban. */
  isLearned(unban: Unban): boolean {
    return this.#servers.every((server) => server.hasLearned(unban));
  }

  #faults(): readonly (() => void)[] {
    const { world, valkey } = this;
    const { random } = world;
    const outageMs = () => random.pick([random.between(0, 3_000), random.between(0, MAX_OUTAGE_MS)]);
    const lose = () => {
      world.note("Valkey loses its data");
      valkey.model.flush();
      this.engines[0].lose();
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
          world.schedule(valkey.pauseMs + random.between(-600, 100), () =>
            this.#server(this.stays ? 0 : undefined).receive(),
          );
      },
      toServer("is cut off", (server) => valkey.cutOff(server, outageMs())),
      toServer("loses its connections", (server) => valkey.breakConnections((each) => each === server)),
      toServer("has silent connections", (server) => valkey.silenceConnections((each) => each === server)),
      () => {
        world.note("Valkey stops");
        valkey.stop();
        if (random.chance(2)) {
          this.isLost = true;
          lose();
        }
        world.schedule(outageMs(), () => {
          world.note("Valkey starts");
          valkey.isDown = false;
        });
      },
      () => {
        this.isFlushed = true;
        lose();
      },
      () => {
        const i = random.below(SERVERS);
        const { process } = this.#server(i);
        world.note(process.name, "is killed");
        process.kill();
        this.isKilled = true;
        this.#servers[i] = new Server(this, process.name);
      },
      () => this.#server().block(random.between(0, 3_000)),
      () => void (this.#server().process.wallStepMs += random.between(-100_000, 100_000)),
      () => {
        world.note("PostgreSQL stands still");
        this.remote.pause(random.between(0, 5_000));
      },
      () => {
        this.remote.lossOneIn = random.pick([0, 3, 10]);
        world.note("PostgreSQL loses one message in", this.remote.lossOneIn);
      },
    ];
  }

  /** A client that stays with one server is allowed the limit in a window, and everybody twice the limit. */
  #judgeWindows(): void {
    const { world, limit, stays, isForgotten, isKilled, allowed, unknown } = this;
    const most = stays && !isKilled ? Math.min(limit + unknown, 2 * limit) : 2 * limit;
    let window: { readonly opensAt: number; count: number } | undefined;
    for (const { opensAt } of allowed.toSorted((one, other) => one.opensAt - other.opensAt)) {
      if (!window || opensAt - window.opensAt > SHOWN_NEAR_MS) window = { opensAt, count: 0 };
      window.count++;
      const { count, opensAt: from } = window;
      if (!isForgotten)
        world.check(
          count <= most,
          () => `${count} of ${limit} are allowed in the window from ${from}, more than ${most}`,
        );
    }
  }
}

class Server {
  readonly process: Process;
  readonly #game: RateLimits;
  readonly #limiter: ValkeyKeyLimiter;
  readonly #unbans = new Set<Unban>();
  /** The decisions of engines minus those that clients received. */
  readonly #undelivered: Counts = { allowed: 0, limited: 0, banned: 0 };
  #blockedMs = 0;
  #pending = 0;
  #bannedUntil = -Infinity;
  isOutage = true;

  constructor(game: RateLimits, name: string) {
    this.process = new Process(game.world, name);
    this.#game = game;
    const { clock } = this.process;
    const ban = () => game.ban;
    this.#limiter = new ValkeyKeyLimiter(
      {
        clock,
        scheduler: this.process,
        ban,
        counter: game.database.counterOf(this.process),
        timeoutMs: TIMEOUT_MS,
        onStateChange: (state) => this.#changed(state),
      },
      () => game.valkey.open(this.process),
      { isCluster: false, maxBatchSize: 4, maxConcurrentBatches: 1 },
    );
    void this.#limiter.start().then(() => {
      if (!game.valkey.isDown) this.isOutage = false;
    });
  }

  #changed(state: "available" | "unavailable"): void {
    const { world, kind } = this.#game;
    world.note(this.process.name, "says that Valkey is", state);
    this.isOutage = state === "unavailable";
    world.check(kind !== "pauses" || !this.isOutage, "a short pause is an outage");
    this.#game.unknown += this.#pending;
  }

  block(ms: number): void {
    this.#blockedMs += ms;
    this.process.block(ms);
  }

  counted(counts: Counts): void {
    for (const outcome of ["allowed", "limited", "banned"] as const)
      this.#undelivered[outcome] += counts[outcome];
  }

  async learn(unban: Unban): Promise<void> {
    const { world } = this.#game;
    for (;;) {
      try {
        await this.#limiter.unban(KEY, world.now - unban.at);
        break;
      } catch {
        await this.process.sleep(LEARNED_MS / 4);
      }
    }
    this.#unbans.add(unban);
    this.#bannedUntil = -Infinity;
    if (this.#game.isLearned(unban)) unban.learnedAt = world.now;
  }

  hasLearned(unban: Unban): boolean {
    return this.#unbans.has(unban);
  }

  /** Receives a request, which waits until the process has time. */
  receive(): void {
    this.#game.world.schedule(0, () => void this.#handle(), this.process);
  }

  async #handle(): Promise<void> {
    const { world, limits } = this.#game;
    const [startedAt, blockedMs, bannedUntil] = [world.now, this.#blockedMs, this.#bannedUntil];
    this.#pending++;
    try {
      this.#judge(await this.#limiter.decide(KEY, limits), bannedUntil);
    } catch (error) {
      world.check(error instanceof Unavailable, () => `a request fails: ${error}`);
      world.note(this.process.name, "rejects with 503");
    } finally {
      this.#pending--;
    }
    const waitedMs = world.now - startedAt - (this.#blockedMs - blockedMs);
    world.check(waitedMs <= MAX_WAIT_MS, `a request waited for ${waitedMs} ms`);
  }

  /** `bannedUntil` is what the server knew when the request arrived. */
  #judge({ outcome, ...windows }: Decision, bannedUntil: number): void {
    const { world, allowed, bans, unbans, windowMs, isForgotten } = this.#game;
    world.note(this.process.name, outcome);
    world.check(this.#undelivered[outcome]-- > 0, `nobody has counted a request that is ${outcome}`);
    if (outcome === "allowed") {
      const { resetAt } = windowMs === DAY_MS ? windows.day : windows.minute;
      allowed.push({ opensAt: 1_000 * resetAt - windowMs - this.process.clock.stepMs - STARTS_AT });
    }
    if (outcome !== "banned") {
      const isOver = world.now >= bannedUntil - NEAR_MS || unbans.length > 0 || isForgotten;
      world.check(isOver, "a known ban is not applied");
      return;
    }
    const current = bans.filter(
      ({ from, to }) => from <= world.now && world.now < to + MAX_WAIT_MS + NEAR_MS,
    );
    world.check(current.length > 0, "a key is rejected without a ban");
    const isLifted = ({ from }: Ban) =>
      unbans.some(({ at, learnedAt }) => at > from + NEAR_MS && learnedAt + MAX_WAIT_MS < world.now);
    world.check(!current.every(isLifted), "a key is rejected after its unban");
    this.#bannedUntil = Math.min(...current.map(({ to }) => to));
  }
}
