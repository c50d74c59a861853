import type { BanRules, Decision } from "../../src/domain/rate-limit.ts";
import type { Process, World } from "./world.ts";

interface Ban {
  readonly from: number;
  readonly to: number;
  /** The server that decided it, without Valkey. */
  readonly server: Process | undefined;
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
 * The bans of a key, by Valkey and by servers in an outage, and the unbans.
 *
 * Judged: a ban has enough rejections before it, and is told of once. Whoever is rejected has a ban that nobody has
 * ended. A server that knows of a ban keeps to it in an outage. Once Valkey is back, all servers keep to the bans of
 * the outage, and to none that was ended in it.
 */
export class BanHistory {
  readonly #bans: Ban[] = [];
  readonly #unbans: Unban[] = [];
  readonly #rejections: number[] = [];
  /** Those of Valkey, by the time at which they begin there: whether a server has told of it. */
  readonly #isTold = new Map<number, boolean>();
  /** What each server knows. */
  readonly #known = new Map<Process, readonly Ban[]>();
  /** When bans may have been lost: all of them, or those of a server. */
  readonly #losses: { readonly at: number; readonly server?: Process }[] = [];

  constructor(
    private readonly world: World,
    private readonly surroundings: Surroundings,
  ) {}

  get isEveryBanTold(): boolean {
    return [...this.#isTold.values()].every((isTold) => isTold);
  }

  lost(server?: Process): void {
    this.#losses.push({ at: this.world.now, ...(server && { server }) });
  }

  rejected(): void {
    this.#rejections.push(this.world.now);
  }

  bannedByValkey(startedAt: number, lengthMs: number): void {
    this.#isTold.set(startedAt, false);
    this.#add(lengthMs, undefined);
  }

  /** A server tells of a new ban: by Valkey, or of its own. */
  told(server: Process, startedAt: number, lengthMs: number): void {
    const isTold = this.#isTold.get(startedAt);
    this.world.check(isTold !== true, "two servers tell of a ban");
    if (isTold === undefined)
      this.#known.set(server, [...(this.#known.get(server) ?? []), this.#add(lengthMs, server)]);
    else this.#isTold.set(startedAt, true);
  }

  #add(lengthMs: number, server: Process | undefined): Ban {
    const { world } = this;
    const { rules, windowMs } = this.surroundings;
    const since = world.now - windowMs - NEAR_MS;
    const rejections = this.#rejections.filter((at) => at >= since).length;
    world.check(rejections >= rules.strikes, `a ban after ${rejections} rejections`);
    const ban = { from: world.now, to: world.now + lengthMs, server };
    world.note("ban for", lengthMs, "by", server?.name ?? "Valkey");
    this.#bans.push(ban);
    return ban;
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
      // An unban that a server learns of late ends a ban of the meantime if it was joined with one from before.
      if (!isCurrent || this.#unbans.some((unban) => unban.at > ban.from - LEARNED_MS - NEAR_MS)) continue;
      const isInOutage = outageAt !== undefined;
      const isLost = this.#losses.some(
        (loss) => loss.at >= ban.from && (loss.server === undefined || loss.server === ban.server),
      );
      const isKnown = isInOutage ? this.#known.get(server)?.includes(ban) === true : isCalm;
      this.world.check(isLost || !isKnown, `a key is allowed that is banned since ${ban.from}`);
    }
  }
}
