import type { BanRules, Decision } from "../../src/domain/rate-limit.ts";
import type { Process, World } from "./world.ts";

interface Ban {
  readonly from: number;
  readonly to: number;
}

interface Unban {
  readonly at: number;
  /** When each server learned of it. */
  readonly applied: Map<Process, number>;
}

/** A decision, with what the server could know. */
interface Judged {
  readonly server: Process;
  readonly outcome: Decision["outcome"];
  readonly at: number;
  /** When the outage began in which the server decided, if it did. */
  readonly outageAt: number | undefined;
  /** Whether no server was in an outage lately. */
  readonly isCalm: boolean;
}

interface Surroundings {
  readonly rules: BanRules;
  readonly windowMs: number;
  /** What is reported or replied late moves a ban by as much. */
  readonly lateMs: number;
  /** After so long without an outage, Valkey knows what all servers know. */
  readonly reportedMs: number;
}

/** Clocks are read to the millisecond, and replies take some. */
const NEAR_MS = 20;
/** Servers learn of an unban within a second. */
const LEARNED_MS = 1_000;

/**
 * The bans of a key, by Valkey, and the unbans.
 *
 * Judged: a ban has enough rejections before it, and is told of once. Whoever is rejected has a ban that nobody has
 * ended. A server that knows of a ban keeps to it in an outage. Once Valkey is back, all servers keep to no ban that
 * was ended in the outage.
 */
export class BanHistory {
  readonly #bans: Ban[] = [];
  readonly #unbans: Unban[] = [];
  readonly #rejections: number[] = [];
  /** By the time at which a ban begins in Valkey: whether a server has told of it. */
  readonly #isTold = new Map<number, boolean>();
  /** What each server knows. */
  readonly #known = new Map<Process, readonly Ban[]>();
  /** When Valkey lost its data. */
  readonly #losses: number[] = [];

  constructor(
    private readonly world: World,
    private readonly surroundings: Surroundings,
  ) {}

  get isEveryBanTold(): boolean {
    return [...this.#isTold.values()].every((isTold) => isTold);
  }

  lost(): void {
    this.#losses.push(this.world.now);
  }

  rejected(): void {
    this.#rejections.push(this.world.now);
  }

  began(startedAt: number, lengthMs: number): void {
    const { world } = this;
    const { rules, windowMs } = this.surroundings;
    const since = world.now - windowMs - NEAR_MS;
    const rejections = this.#rejections.filter((at) => at >= since).length;
    world.check(rejections >= rules.strikes - 1, `a ban after ${rejections} rejections`);
    world.note("ban for", lengthMs);
    this.#isTold.set(startedAt, false);
    this.#bans.push({ from: world.now, to: world.now + lengthMs });
  }

  told(startedAt: number): void {
    const isTold = this.#isTold.get(startedAt);
    this.world.check(isTold !== undefined, "a server tells of a ban that is not Valkey's");
    this.world.check(isTold !== true, "two servers tell of a ban");
    this.#isTold.set(startedAt, true);
  }

  unban(servers: readonly Process[], apply: (server: Process, agoMs: number) => void): void {
    const { world } = this;
    const unban: Unban = { at: world.now, applied: new Map() };
    world.note("unban");
    this.#unbans.push(unban);
    for (const server of servers) {
      unban.applied.set(server, Infinity);
      const learn = () => {
        unban.applied.set(server, world.now);
        apply(server, world.now - unban.at);
      };
      world.schedule(world.random.between(0, LEARNED_MS), learn, server);
    }
  }

  judge(judged: Judged): void {
    const { server, outcome, at, outageAt } = judged;
    if (outcome === "banned") this.#judgeBanned(judged);
    if (outcome === "allowed") this.#judgeAllowed(judged);
    if (outageAt !== undefined) return;
    const known = this.#bans.filter((ban) => ban.from <= at && at < ban.to);
    this.#known.set(server, outcome === "banned" ? known : []);
  }

  #judgeBanned(judged: Judged): void {
    const { at } = judged;
    const current = this.#bans.filter(({ from, to }) => from <= at && at < to + this.surroundings.lateMs);
    this.world.check(current.length > 0, "a key is rejected without a ban");
    const isEnded = ({ from }: Ban) =>
      this.#unbans.some((unban) => unban.at > from + NEAR_MS && this.#isKnown(unban, judged));
    this.world.check(!current.every(isEnded), "a key is rejected after its unban");
  }

  #isKnown({ applied }: Unban, { server, at, outageAt, isCalm }: Judged): boolean {
    const learnedAt = applied.get(server);
    if (outageAt !== undefined) return learnedAt !== undefined && learnedAt >= outageAt && learnedAt <= at;
    const times = [...applied].flatMap(([each, time]) => (each.hasEnded ? [] : time));
    return isCalm && times.every((time) => time + this.surroundings.reportedMs <= at);
  }

  #judgeAllowed({ server, at, outageAt, isCalm }: Judged): void {
    for (const ban of this.#bans) {
      const isCurrent = at > ban.from + NEAR_MS && at < ban.to - NEAR_MS;
      // An unban that arrives late ends a ban of the meantime.
      const since = ban.from - LEARNED_MS - this.surroundings.lateMs;
      if (!isCurrent || this.#unbans.some((unban) => unban.at > since)) continue;
      const isInOutage = outageAt !== undefined;
      const isLost = this.#losses.some((lostAt) => lostAt >= ban.from);
      const isKnown = isInOutage ? this.#known.get(server)?.includes(ban) === true : isCalm;
      this.world.check(isLost || !isKnown, `a key is allowed that is banned since ${ban.from}`);
    }
  }
}
