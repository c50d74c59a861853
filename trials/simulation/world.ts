import { drainMicrotasks } from "bun:jsc";
import { Unavailable } from "../../src/api/errors.ts";
import { createClock } from "../../src/clock.ts";
import type { Clock } from "../../src/domain/ports/clock.ts";
import type { ScheduledTimer, Scheduler } from "../../src/runtime/scheduler.ts";
import { Random } from "../harness/random.ts";

interface Event {
  /** When the event happens. `dueAt` is when it was to happen. */
  at: number;
  readonly dueAt: number;
  readonly order: number;
  readonly owner: Process | undefined;
  work: (() => void) | undefined;
}

/** A promise of the service was broken. */
export class Violation extends Error {}

/** The time at which every simulation starts. */
export const STARTS_AT = Date.parse("2026-11-15T12:00:00Z");
const MAX_EVENTS = 200_000;

/**
 * A clock, chance and a queue of events, all determined by the seed. Events happen one after the other, each with all
 * the promises that it resolves; no real time passes. Without a seed nothing is late.
 */
export class World {
  readonly random: Random;
  readonly #isPunctual: boolean;
  /** A record of events for readers. */
  readonly history: (readonly [number, ...unknown[]])[] = [];
  #now = 0;
  #order = 0;
  #isRunning = false;
  #violation: Violation | undefined;
  /** The events in reverse order: the next one is last. */
  readonly #events: Event[] = [];

  constructor(seed?: number) {
    this.random = new Random(seed ?? 0);
    this.#isPunctual = seed === undefined;
  }

  get now(): number {
    return this.#now;
  }

  /** A random delay. */
  delay(maxMs: number): number {
    return this.#isPunctual ? 0 : this.random.between(0, maxMs);
  }

  note(...what: unknown[]): void {
    this.history.push([this.#now, ...what]);
  }

  /**
   * Checks a condition. A violation ends the run after the event, because the service may catch an error that is thrown
   * in it.
   */
  check(isTrue: boolean, violation: string | (() => string)): void {
    if (isTrue) return;
    this.#violation ??= new Violation(typeof violation === "string" ? violation : violation());
    if (!this.#isRunning) throw this.#violation;
  }

  /** Schedules work. The work of a process is late while it is busy, and never happens once the process has ended. */
  schedule(ms: number, work: () => void, owner?: Process): ScheduledTimer {
    const at = this.#now + Math.max(0, ms);
    const event: Event = { at, dueAt: at, order: this.#order++, owner, work };
    this.#push(event);
    const close = () => void (event.work = undefined);
    return { close, unref() {} };
  }

  /** Schedules the work a random number of times, less than `count`, within the given time. */
  often(count: number, withinMs: number, work: () => void, owner?: Process): void {
    for (let i = this.random.below(count); i > 0; i--)
      this.schedule(this.random.between(0, withinMs), work, owner);
  }

  /** Advances the time. Throws the first error of an event. */
  run(ms: number): void {
    const end = this.#now + ms;
    this.#isRunning = true;
    drainMicrotasks();
    for (let events = 0; this.#violation === undefined; events++) {
      const next = this.#events.at(-1);
      if (next === undefined || next.at > end) break;
      this.check(events < MAX_EVENTS, `there are more than ${MAX_EVENTS} events`);
      this.#events.pop();
      this.#now = next.at;
      this.#happen(next);
      drainMicrotasks();
    }
    if (this.#violation) throw this.#violation;
    this.#isRunning = false;
    this.#now = end;
  }

  #happen(event: Event): void {
    const { owner, work } = event;
    if (work === undefined || owner?.hasEnded === true) return;
    if (owner === undefined || owner.busyUntil <= this.#now) return work();
    event.at = owner.busyUntil;
    this.#push(event);
  }

  #push(event: Event): void {
    let [low, high] = [0, this.#events.length];
    while (low < high) {
      const middle = (low + high) >>> 1;
      const other = this.#events[middle];
      if (other && isBefore(event, other)) low = middle + 1;
      else high = middle;
    }
    this.#events.splice(low, 0, event);
  }
}

function isBefore(one: Event, other: Event): boolean {
  if (one.at !== other.at) return one.at < other.at;
  return one.dueAt === other.dueAt ? one.order < other.order : one.dueAt < other.dueAt;
}

/** The largest delay of iterations of the event loop and timers. */
const MAX_TURN_MS = 0.1;
const MAX_LATE_MS = 1;

/** A process with an event loop of its own, which may be busy or paused, and may be killed. */
export class Process implements Scheduler {
  hasEnded = false;
  busyUntil = 0;
  /** How far the clock of its machine has been set. */
  wallStepMs = 0;
  readonly clock: Clock;
  #immediateAt = 0;

  constructor(
    readonly world: World,
    readonly name: string,
  ) {
    const wall = () => STARTS_AT + this.now() + this.wallStepMs;
    this.clock = createClock({ wall, elapsed: () => this.now() });
  }

  /** Blocks the process: it does nothing else for this time. */
  block(ms: number): void {
    this.busyUntil = this.now() + ms;
  }

  kill(): void {
    this.hasEnded = true;
  }

  now(): number {
    return Math.max(this.world.now, this.busyUntil);
  }

  random(): number {
    return this.world.random.fraction();
  }

  setTimeout(work: () => void, ms: number): ScheduledTimer {
    return this.world.schedule(ms + this.world.delay(MAX_LATE_MS), work, this);
  }

  setInterval(work: () => void, ms: number): ScheduledTimer {
    const again = () => {
      timer = this.setTimeout(again, ms);
      work();
    };
    let timer = this.setTimeout(again, ms);
    return { close: () => timer.close(), unref() {} };
  }

  /** Runs work in the order of the calls. */
  setImmediate(work: () => void): void {
    this.#immediateAt = Math.max(this.#immediateAt, this.world.now + this.world.delay(MAX_TURN_MS));
    this.world.schedule(this.#immediateAt - this.world.now, work, this);
  }

  atEndOfIteration(work: () => void): void {
    this.setImmediate(work);
  }

  sleep(ms: number): Promise<void> {
    return new Promise((resolve) => this.setTimeout(resolve, ms));
  }

  yield(): Promise<void> {
    return new Promise((resolve) => this.setImmediate(resolve));
  }
}

/** The periods in which something was in trouble. Promises about durations hold for the time without trouble. */
export class Troubles {
  readonly #troubles: { readonly from: number; readonly to: number }[] = [];

  add(from: number, ms: number): void {
    this.#troubles.push({ from, to: from + ms });
  }

  has(at: number): boolean {
    return this.#troubles.some(({ from, to }) => from <= at && at < to);
  }

  /** The latest time before `at` that was followed by `ms` without trouble. */
  calmSince(at: number, ms: number): number {
    let end = at;
    for (const { from, to } of this.#troubles.toReversed())
      if (from < end && to > end - ms) end = Math.min(end, from);
    return end - ms;
  }
}

const SLOW = 4;

/** A server that processes call over a network. Calls overtake each other; it may pause, and replies get lost. */
export class Remote {
  #pausedUntil = 0;
  /** One in so many requests and replies is lost; 0 loses none. */
  lossOneIn = 0;

  /** A request and its reply each take at most `maxDelayMs`; one in ten is slower. */
  constructor(
    private readonly world: World,
    private readonly maxDelayMs: number,
    private readonly timeoutMs: number,
  ) {}

  pause(ms: number): void {
    this.#pausedUntil = this.world.now + ms;
  }

  /** Runs the work remotely. Its errors are returned; after the timeout, Unavailable is thrown. */
  call<T>(caller: Process, work: () => T): Promise<T> {
    return new Promise((resolve, reject) => {
      const timer = caller.setTimeout(() => reject(new Unavailable("no response")), this.timeoutMs);
      const reply = (settle: () => void) =>
        this.#transmit(() => {
          timer.close();
          settle();
        }, caller);
      const arrive = () => {
        const waitMs = this.#pausedUntil - this.world.now;
        if (waitMs > 0) return void this.world.schedule(waitMs, arrive);
        try {
          const result = work();
          reply(() => resolve(result));
        } catch (error) {
          reply(() => reject(error));
        }
      };
      this.#transmit(arrive);
    });
  }

  #transmit(work: () => void, receiver?: Process): void {
    const { random } = this.world;
    if (this.lossOneIn > 0 && random.chance(this.lossOneIn)) return;
    const maxMs = this.maxDelayMs * (random.chance(10) ? SLOW : 1);
    this.world.schedule(random.between(0, maxMs), work, receiver);
  }
}
