import { expect, onTestFinished } from "bun:test";
import { type BanRules, DEFAULT_BAN, type Limits, type OnBan } from "../../src/domain/rate-limit.ts";
import { createMemoryRateLimiter } from "../../src/rate-limit/memory/memory-rate-limiter.ts";
import type { ValkeyLink } from "../../src/rate-limit/valkey/connection.ts";
import type { KeyReport, RequestGroup } from "../../src/rate-limit/valkey/script.ts";
import { SharedRateLimiter } from "../../src/rate-limit/valkey/shared-rate-limiter.ts";
import { SimulatedValkey, ValkeyModel } from "../../trials/simulation/valkey.ts";
import { Process, STARTS_AT, World } from "../../trials/simulation/world.ts";
import { key } from "../subjects.ts";

export const FREE: Limits = { perMinute: 60, perDay: 1_000 };
export const TIMEOUT_MS = 500;
/** The timeout, and a tick of the timer. */
export const OUTAGE_MS = 550;
/** How long a server still decides by its shares when Valkey replies again. */
export const RETURN_MS = 500;

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
  readonly reports: KeyReport[] = [];
  /** The most keys of a batch. */
  keys = 0;

  override decide(groups: readonly RequestGroup[], reports: readonly KeyReport[] = []) {
    this.batches.push(groups);
    this.reports.push(...reports);
    this.keys = Math.max(this.keys, new Set([...groups, ...reports].map(({ subject }) => subject.id)).size);
    return super.decide(groups, reports);
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
  const states: string[] = [];
  const processes = Array.from({ length: servers }, (_, i) => new PromptProcess(time, `${i}`));
  const opens: Process[] = [];
  const limiters = processes.map((process) => {
    const { clock } = process;
    const limiter = new SharedRateLimiter(
      {
        clock,
        scheduler: process,
        ban: () => rules,
        local: createMemoryRateLimiter({ clock, ban: () => rules, scheduler: process }),
        timeoutMs,
        serverCount: () => servers,
        onBan,
        onStateChange: (state, cause) =>
          states.push(cause instanceof Error ? `${state}: ${cause.message}` : state),
      },
      {
        open(): Promise<ValkeyLink> {
          opens.push(process);
          return valkey.open(process);
        },
        isCluster,
        maxBatchSize,
        maxConcurrentBatches,
      },
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
    time.run(RETURN_MS);
  };
  return {
    time,
    valkey,
    model,
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
