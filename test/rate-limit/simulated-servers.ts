import { expect, onTestFinished } from "bun:test";
import { type BanRules, DEFAULT_BAN } from "../../src/domain/ban-rules.ts";
import type { Limits, OnBan } from "../../src/domain/rate-limit.ts";
import type { LimiterConnection } from "../../src/rate-limit/valkey/connection.ts";
import type { KeyHandOver, RequestGroup } from "../../src/rate-limit/valkey/script.ts";
import { ValkeyKeyLimiter } from "../../src/rate-limit/valkey/valkey-key-limiter.ts";
import { SimulatedDatabase } from "../../trials/simulation/database.ts";
import { SimulatedValkey, ValkeyModel } from "../../trials/simulation/valkey.ts";
import { Process, STARTS_AT, World } from "../../trials/simulation/world.ts";
import { key } from "../subjects.ts";

export const FREE: Limits = { perMinute: 60, perDay: 1_000 };
export const TIMEOUT_MS = 500;
/** The timeout, and a tick of the timer. */
export const OUTAGE_MS = 550;

interface Settings {
  readonly servers?: number;
  readonly rules?: BanRules;
  readonly isCluster?: boolean;
  readonly timeoutMs?: number;
  readonly maxBatchSize?: number;
  readonly maxConcurrentBatches?: number;
  readonly onBan?: OnBan;
}

class RecordingModel extends ValkeyModel {
  readonly batches: (readonly RequestGroup[])[] = [];
  readonly handOvers: KeyHandOver[] = [];
  /** The most keys of a batch. */
  keys = 0;

  override decide(groups: readonly RequestGroup[], handOvers: readonly KeyHandOver[] = []) {
    this.batches.push(groups);
    this.handOvers.push(...handOvers);
    this.keys = Math.max(this.keys, new Set([...groups, ...handOvers].map(({ subject }) => subject.id)).size);
    return super.decide(groups, handOvers);
  }
}

class PromptProcess extends Process {
  override atEndOfIteration(work: () => void): void {
    queueMicrotask(work);
  }
}

/** Several servers on a simulated Valkey, whose clock is hours behind theirs. Time passes in `time.run` only. */
export async function setUp(settings: Settings = {}) {
  const { servers = 4, rules = DEFAULT_BAN, maxBatchSize = 32, maxConcurrentBatches = 1, onBan } = settings;
  const { isCluster = false, timeoutMs = TIMEOUT_MS } = settings;
  const time = new World();
  const model = new RecordingModel(() => STARTS_AT + time.now - 10_000_000, rules);
  const valkey = new SimulatedValkey(time, model);
  // Its clock is hours ahead.
  const database = new SimulatedDatabase({ now: () => STARTS_AT + time.now + 7_000_000, rules });
  const states: string[] = [];
  const processes = Array.from({ length: servers }, (_, i) => new PromptProcess(time, `${i}`));
  const opens: Process[] = [];
  const limiters = processes.map((process) => {
    const { clock } = process;
    const limiter = new ValkeyKeyLimiter(
      {
        clock,
        scheduler: process,
        ban: () => rules,
        timeoutMs,
        counter: database.counterOf(process, onBan),
        onBan,
        onStateChange: (state, cause) =>
          states.push(cause instanceof Error ? `${state}: ${cause.message}` : state),
      },
      (): Promise<LimiterConnection> => {
        opens.push(process);
        return valkey.open(process);
      },
      { isCluster, maxBatchSize, maxConcurrentBatches },
    );
    onTestFinished(() => limiter.close());
    return limiter;
  });
  for (const limiter of limiters) await limiter.start();
  const [first] = limiters;
  if (first === undefined) throw new Error("no server");

  /** How many requests are allowed, if each of the servers gets so many at once. */
  const burst = async (count: number, { limits = FREE, on = limiters, id = 1 } = {}) => {
    const decisions = on.flatMap((limiter) =>
      Array.from({ length: count }, async () => limiter.decide(key(id), limits)),
    );
    return (await Promise.all(decisions)).filter(({ outcome }) => outcome === "allowed").length;
  };
  /** Every server sees that nothing is left. */
  const exhaust = async () => {
    expect(await burst(20)).toBe(60);
    expect(await burst(1)).toBe(0);
  };
  /** Every server notices. */
  const beginOutage = async () => {
    valkey.pause();
    const noticed = burst(1, { id: 999 });
    time.run(OUTAGE_MS);
    await noticed;
  };
  const endOutage = async () => {
    valkey.resume();
    time.run(0);
  };
  return {
    time,
    valkey,
    model,
    database,
    opens,
    states,
    processes,
    limiters,
    first,
    burst,
    exhaust,
    beginOutage,
    endOutage,
  };
}
