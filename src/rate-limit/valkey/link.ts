import type { Decision, Limits, Report, Subject, Usage } from "../../domain/rate-limit.ts";

/** An API key, the only subject that servers share. */
export type KeySubject = Extract<Subject, { kind: "key" }>;

export interface DecisionRequest {
  readonly subject: KeySubject;
  readonly limits: Limits;
}

export interface KeyReport extends Report {
  readonly subject: KeySubject;
}

/** In the order of the requests or reports. Times are by Valkey's clock. */
export interface Replies<Reply> {
  /** When Valkey replied. */
  readonly now: number;
  readonly replies: readonly Reply[];
}

/** The usage after the decision, without its strikes. */
export interface DecisionReply {
  readonly outcome: Decision["outcome"];
  /** Whether the request led to the ban. */
  readonly isNewBan: boolean;
  readonly usage: Usage;
}

export interface ServerEntry {
  readonly id: string;
  /** What the server tells of itself. */
  readonly text: string;
}

/** A connection to Valkey. Each method is one round trip. A simulation replaces it. */
export interface ValkeyLink {
  /** By Valkey's clock. */
  readonly openedAt: number;
  /** Decides the requests in their order, all of them in one step. Waits for the reply as long as it takes. */
  decide(requests: readonly DecisionRequest[]): Promise<Replies<DecisionReply>>;
  /** Adds what was decided elsewhere. Replies with the usages then. Waits for the reply as long as it takes. */
  report(reports: readonly KeyReport[]): Promise<Replies<Usage>>;
  /** Undefined when nothing of it is current. */
  usage(subject: KeySubject): Promise<Usage | undefined>;
  /** What each server in the register tells of itself, after `own` is entered. */
  servers(own?: ServerEntry): Promise<readonly string[]>;
  removeServer(id: string): Promise<void>;
  /** Called when the connection ends, on either side. */
  onEnd(listener: () => void): void;
  /** Does not wait for Valkey. */
  close(): void;
}

/** Opens a connection on which requests of this subject work. */
export type OpenLink = (subject: KeySubject) => Promise<ValkeyLink>;
