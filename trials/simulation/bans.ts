import type { BanRules, Decision } from "../../src/domain/rate-limit.ts";
import type { Process, World } from "./world.ts";

interface Ban {
  readonly from: number;
  readonly to: number;
}

interface Unban {
  readonly at: number;
  /** When each server learned of the unban. */
  readonly applied: Map<Process, number>;
}

/** A decision, with the facts that the server could know. */
interface Judged {
  readonly server: Process;
  readonly outcome: Decision["outcome"];
  readonly at: number;
  /** When the outage began in which the server decided, if there was one. */
  readonly outageAt: number | undefined;
  /** Whether no server was in an outage recently. */
  readonly isCalm: boolean;
}

interface Surroundings {
  readonly rules: BanRules;
  readonly windowMs: number;
  /** The largest delay of reports and replies, by which a ban may be shifted. */
  readonly lateMs: number;
  /** The time without an outage after which Valkey knows what all servers know. */
  readonly reportedMs: number;
}

/** The tolerance of times. Clocks are read to the millisecond, and replies take some. */
const NEAR_MS = 20;
/** The time within which servers learn of an unban. */
const LEARNED_MS = 1_000;

/**
 * The bans of a key in Valkey, and the unbans.
 *
 * The rules are: A ban has enough rejections before it, further apart than the grace period, and is reported once.
 * Every rejected request has a ban that nobody has lifted. A server that knows of a ban applies it in an outage. Once
 * Valkey is available again, no server applies a ban that was lifted in the outage.
 */
export class BanHistory {
  readonly #bans: Ban[] = [];
  readonly #unbans: Unban[] = [];
  readonly #rejections: number[] = [];
  /** Whether a server has reported a ban, by the time at which the ban begins in Valkey. */
  readonly #isReported = new Map<number, boolean>();
  /** The bans that each server knows of. */
  readonly #known = new Map<Process, readonly Ban[]>();
  /** The times at which Valkey lost its data. */
  readonly #losses: number[] = [];

  constructor(
    private readonly world: World,
    private readonly surroundings: Surroundings,
  ) {}

  get isEveryBanReported(): boolean {
    return [...this.#isReported.values()].every((isReported) => isReported);
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
    let strikes = 0;
    let lastAt = -Infinity;
    for (const at of this.#rejections) {
      if (at < since || at - lastAt <= rules.graceMs - NEAR_MS) continue;
      strikes++;
      lastAt = at;
    }
    world.check(strikes >= rules.strikes - 1, `a ban after ${strikes} strikes`);
    world.note("ban for", lengthMs);
    this.#isReported.set(startedAt, false);
    this.#bans.push({ from: world.now, to: world.now + lengthMs });
  }

  told(startedAt: number): void {
    const isReported = this.#isReported.get(startedAt);
    this.world.check(isReported !== undefined, "a server reports a ban that is not Valkey's");
    this.world.check(isReported !== true, "two servers report a ban");
    this.#isReported.set(startedAt, true);
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
      // An unban that arrives late lifts a ban that began meanwhile.
      const since = ban.from - LEARNED_MS - this.surroundings.lateMs;
      if (!isCurrent || this.#unbans.some((unban) => unban.at > since)) continue;
      const isInOutage = outageAt !== undefined;
      const isLost = this.#losses.some((lostAt) => lostAt >= ban.from);
      const isKnown = isInOutage ? this.#known.get(server)?.includes(ban) === true : isCalm;
      this.world.check(isLost || !isKnown, `a key is allowed that is banned since ${ban.from}`);
    }
  }
}
