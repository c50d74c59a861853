import type { Fleet } from "../test/instances/fleet.ts";

/** Servers under load, and the engines they run on. */
export interface Ground {
  readonly fleet: Fleet;
  /** For the load; one is made where there is none. */
  readonly key?: string;
  stop(): Promise<void>;
}

/** Something that goes wrong while clients are being served, and what is expected then. */
export interface Scenario<G extends Ground = Ground> {
  /** For `--only`. */
  readonly name: string;
  /** What goes wrong, in a few words. */
  readonly title: string;
  /** Why it cannot be played on this machine, if so. */
  unfit?(): string | undefined;
  prepare(): Promise<G>;
  /** Over when the fault has begun. */
  begin(ground: G): Promise<void>;
  /** How long it is left like that; none when `begin` is all there is. */
  readonly lastsMs?: number;
  /** Looked at while the fault lasts: what was found, and what of it should not be. */
  during?(ground: G, key: string): Promise<Findings>;
  /** Over when the cause of the fault is gone; the servers have yet to find out. */
  end?(ground: G): Promise<void>;
  readonly expectations: readonly Expectation[];
}

export interface Findings {
  readonly notes: readonly string[];
  readonly problems: readonly string[];
}

export type Engine = "PostgreSQL" | "Valkey";

export interface Turns {
  /** At the time of the fault, or just after. */
  readonly atFault: number;
  readonly elsewhere: number;
}

/** What was measured, all times in milliseconds. */
export interface Figures {
  /** On the wire. */
  readonly requests: number;
  /** By status and code; none of those that were answered as asked. */
  readonly errors: Readonly<Record<string, number>>;
  /** Of the answers of 503. */
  readonly withoutRetryAfter: number;
  /** What clients wanted done and was not, after all their retries. */
  readonly failed: readonly string[];
  readonly medianMs: number;
  /** From the beginning of the fault on. */
  readonly longestMs: number;
  /** Of a server beside them that does nothing but answer, in the same time: what the machine itself adds. */
  readonly longestOfControlMs: number;
  /** The longest of those refused by a server that had refused such a request before. */
  readonly longestKnownMs: number | undefined;
  /** From the end of the fault to the last sign of it. */
  readonly backAfterMs: number | undefined;
  readonly creates: { readonly acknowledged: number; readonly lost: number; readonly doubled: number };
  /** What all servers together wrote to their logs, and how often. */
  readonly log: Readonly<Record<string, number>>;
  /** Lines that say an engine is away. */
  readonly turns: Readonly<Record<Engine, Turns>>;
  /** What the log says of answers of 503. */
  readonly causes: readonly string[];
  readonly notes: readonly string[];
  readonly servers: number;
}

/** Says what is wrong, if anything is. */
export type Expectation = (figures: Figures) => string | undefined;

export interface Result {
  readonly name: string;
  readonly title: string;
  readonly figures?: Figures;
  readonly problems: readonly string[];
  /** Why it was not played. */
  readonly unfit?: string;
}
