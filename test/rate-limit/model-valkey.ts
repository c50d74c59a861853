import { type BanRules, DEFAULT_BAN, type Usage } from "../../src/domain/rate-limit.ts";
import type {
  DecisionRequest,
  KeyReport,
  KeySubject,
  ServerEntry,
  ValkeyLink,
} from "../../src/rate-limit/valkey/link.ts";
import { ValkeyModel } from "../../trials/simulation/valkey.ts";

/** What Valkey does, in memory, with the faults that a test wants. */
export class ModelValkey {
  /** The requests of each batch of decisions, in order. */
  readonly batches: (readonly DecisionRequest[])[] = [];
  readonly reports: KeyReport[] = [];
  readonly servers = new Map<string, string>();
  readonly model: ValkeyModel;
  readonly #links = new Set<ModelLink>();
  #waiting: (() => void)[] = [];
  isPaused = false;
  isDown = false;
  opened = 0;

  /** Its clock need not agree with that of the servers. */
  constructor(now: () => number, rules: BanRules = DEFAULT_BAN) {
    this.model = new ValkeyModel(now, rules);
  }

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
    this.model.flush();
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
    return this.model.usageOf(id);
  }
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
      this.valkey.batches.push(requests);
      return this.valkey.model.decide(requests);
    });
  }

  report(reports: readonly KeyReport[]) {
    return this.#send(() => {
      this.valkey.reports.push(...reports);
      return this.valkey.model.report(reports);
    });
  }

  usage(subject: KeySubject) {
    return this.#send(() => this.valkey.model.usage(subject));
  }

  servers(own?: ServerEntry) {
    return this.#send(() => {
      if (own) this.valkey.servers.set(own.id, own.text);
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
