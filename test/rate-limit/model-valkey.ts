import {
  addReport,
  type BanRules,
  decide,
  DEFAULT_BAN,
  expire,
  isExpired,
  NEVER,
  newUsage,
  type Usage,
} from "../../src/domain/rate-limit.ts";
import type { DecisionRequest, KeyReport, KeySubject, ValkeyLink } from "../../src/rate-limit/valkey/link.ts";

/** What Valkey does, in memory, with the faults that a test wants. */
export class ModelValkey {
  /** The requests of each batch of decisions, in order. */
  readonly batches: (readonly DecisionRequest[])[] = [];
  readonly reports: KeyReport[] = [];
  readonly servers = new Map<string, string>();
  readonly #usages = new Map<number, Usage>();
  readonly #links = new Set<ModelLink>();
  #waiting: (() => void)[] = [];
  isPaused = false;
  isDown = false;
  opened = 0;

  /** Its clock need not agree with that of the servers. */
  constructor(
    readonly now: () => number,
    readonly rules: BanRules = DEFAULT_BAN,
  ) {}

  readonly open = async (): Promise<ValkeyLink> => {
    this.opened++;
    await this.run(() => {});
    if (this.isDown) throw new Error("away");
    const link = new ModelLink(this, () => this.#links.delete(link));
    this.#links.add(link);
    return link;
  };

  /** Commands wait until Valkey goes on. */
  run<T>(command: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      const execute = () => {
        try {
          resolve(command());
        } catch (error) {
          reject(error);
        }
      };
      if (this.isPaused) this.#waiting.push(execute);
      else execute();
    });
  }

  pause(): void {
    this.isPaused = true;
  }

  resume(): void {
    this.isPaused = false;
    for (const execute of this.#waiting.splice(0)) execute();
  }

  /** Its data is lost. */
  kill(): void {
    this.isDown = true;
    this.#usages.clear();
    this.servers.clear();
    this.#waiting = [];
    for (const link of this.#links) link.break();
  }

  restart(): void {
    this.isDown = false;
    this.isPaused = false;
  }

  /** Replies on the newest connections are lost, and commands too from now on. */
  loseConnections(count = this.#links.size): void {
    for (const link of [...this.#links].slice(-count)) link.isLost = true;
  }

  usageOf(id: number): Usage {
    const usage = this.#usages.get(id) ?? newUsage();
    this.#usages.set(id, usage);
    expire(usage, this.now(), this.rules);
    return usage;
  }
}

/** As the scripts reply it, without strikes. */
function stateOf(usage: Usage): Usage {
  const { minute, day, ...bans } = structuredClone(usage);
  const noStrikes = { firstRejectedAt: NEVER, strikes: 0 };
  return { ...bans, minute: { ...minute, ...noStrikes }, day: { ...day, ...noStrikes } };
}

class ModelLink implements ValkeyLink {
  isLost = false;
  readonly #ended: (() => void)[] = [];
  #break: (error: Error) => void = () => {};
  readonly #broken = new Promise<never>((_, reject) => (this.#break = reject));

  constructor(
    private readonly valkey: ModelValkey,
    private readonly onClose: () => void,
  ) {
    this.#broken.catch(() => {});
  }

  decide(requests: readonly DecisionRequest[]) {
    return this.#send(() => {
      const { valkey } = this;
      valkey.batches.push(requests);
      const replies = requests.map(({ subject, limits }) => {
        const usage = valkey.usageOf(subject.id);
        const { bannedAt } = usage;
        const { outcome } = decide(usage, limits, valkey.now(), valkey.rules);
        return { outcome, isNewBan: usage.bannedAt !== bannedAt, usage: stateOf(usage) };
      });
      return { now: valkey.now(), replies };
    });
  }

  report(reports: readonly KeyReport[]) {
    return this.#send(() => {
      const { valkey } = this;
      valkey.reports.push(...reports);
      const replies = reports.map((report) => {
        const usage = valkey.usageOf(report.subject.id);
        addReport(usage, report, valkey.now(), valkey.rules);
        return stateOf(usage);
      });
      return { now: valkey.now(), replies };
    });
  }

  usage({ id }: KeySubject) {
    return this.#send(() => {
      const usage = this.valkey.usageOf(id);
      return isExpired(usage, this.valkey.now()) ? undefined : structuredClone(usage);
    });
  }

  enterServer(id: string, text: string) {
    return this.#send(() => {
      this.valkey.servers.set(id, text);
      return [...this.valkey.servers.values()];
    });
  }

  removeServer(id: string) {
    return this.#send(() => void this.valkey.servers.delete(id));
  }

  onEnd(listener: () => void): void {
    this.#ended.push(listener);
  }

  close(): void {
    this.onClose();
    this.#break(new Error("the connection is closed"));
  }

  break(): void {
    this.close();
    for (const listener of this.#ended) listener();
  }

  async #send<T>(command: () => T): Promise<T> {
    const isSentLost = this.isLost;
    const reply = isSentLost ? new Promise<T>(() => {}) : this.valkey.run(command);
    const result = await Promise.race([reply, this.#broken]);
    return this.isLost ? Promise.race([new Promise<T>(() => {}), this.#broken]) : result;
  }
}
