/** A timer that has been set. */
export interface ScheduledTimer {
  close(): unknown;
  /** The process may end before it fires. */
  unref(): unknown;
}

/** Time, timers, chance and iterations of the event loop. A simulation replaces it by one that a seed determines. */
export interface Scheduler {
  /** Milliseconds since any time, by a monotonic clock. */
  now(): number;
  /** From 0 up to, and without, 1. */
  random(): number;
  setTimeout(work: () => void, ms: number): ScheduledTimer;
  setInterval(work: () => void, ms: number): ScheduledTimer;
  setImmediate(work: () => void): void;
  /** Runs the work when all sockets that were ready have been read, and before work that has yielded. */
  atEndOfIteration(work: () => void): void;
  sleep(ms: number): Promise<void>;
  /** Other work of the event loop goes on meanwhile. */
  yield(): Promise<void>;
}

/** That of this process. The globals are looked up at each call: tests replace them. */
export const scheduler: Scheduler = {
  now: () => performance.now(),
  random: () => Math.random(),
  setTimeout: (work, ms) => setTimeout(work, ms),
  setInterval: (work, ms) => setInterval(work, ms),
  setImmediate: (work) => void setImmediate(work),
  atEndOfIteration,
  sleep: (ms) => Bun.sleep(ms),
  yield: yieldToEventLoop,
};

/** Work that is repeated, one run at a time. */
export interface RepeatedWork {
  /** Resolves after the run in progress, which is the last. */
  close(): Promise<void>;
}

/** Runs the work for the first time after so many milliseconds, and again after as many as it resolves to. */
export function repeat(firstMs: number, work: () => Promise<number>, time = scheduler): RepeatedWork {
  let isClosed = false;
  let running = Promise.resolve();
  let timer = after(firstMs);

  function after(ms: number): ScheduledTimer {
    const next = time.setTimeout(() => (running = run()), ms);
    next.unref();
    return next;
  }

  async function run(): Promise<void> {
    const ms = await work();
    if (!isClosed) timer = after(ms);
  }

  return {
    close() {
      isClosed = true;
      timer.close();
      return running;
    },
  };
}

export class DeadlineExceeded extends Error {
  override readonly name = "DeadlineExceeded";
}

/** Settles as `work` does, or rejects when the time is over. */
export function withTimeout<T>(
  ms: number,
  work: Promise<T>,
  Late: new (message: string) => Error = DeadlineExceeded,
): Promise<T> {
  return new Promise((resolve, reject) => {
    const timer = scheduler.setTimeout(() => reject(new Late(`no response within ${ms} ms`)), ms);
    work.finally(() => timer.close()).then(resolve, reject);
  });
}

const endOfIteration: (() => void)[] = [];

export function atEndOfIteration(work: () => void): void {
  if (endOfIteration.push(work) === 1) setImmediate(finishIteration);
}

function finishIteration(): void {
  for (const work of endOfIteration.splice(0)) work();
}

/** Other work of the event loop goes on before the caller does. */
export function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(() => {
      finishIteration();
      resolve();
    });
  });
}

/** A value now or later: embedded databases return at once, and nothing on their path waits for a promise. */
export type Awaitable<T> = T | Promise<T>;

/** Continues with a value that may not be there yet; one that is there costs no promise and no iteration. */
export function andThen<T, R>(value: Awaitable<T>, next: (value: T) => Awaitable<R>): Awaitable<R> {
  return value instanceof Promise ? value.then(next) : next(value);
}

/** Runs `work`; an error that it throws or rejects with becomes a value. */
export function recover<T>(work: () => Awaitable<T>, onError: (error: unknown) => T): Awaitable<T> {
  try {
    const value = work();
    return value instanceof Promise ? value.catch(onError) : value;
  } catch (error) {
    return onError(error);
  }
}

/** Loads a value when it is first asked for, and keeps it. After an error the next call tries again. */
export function loadOnce<T>(load: () => Awaitable<T>): () => Awaitable<T> {
  let loaded: Awaitable<T> | undefined;
  return () => {
    if (loaded !== undefined) return loaded;
    const value = load();
    loaded = value;
    if (value instanceof Promise) {
      value.then(
        (settled) => (loaded = settled),
        () => (loaded = undefined),
      );
    }
    return value;
  };
}

const REUSED_FOR_COST = 100;
const MAX_REUSED_MS = 30_000;

/**
 * Loads a value when it is asked for, and reuses it for a hundred times as long as that took, so that loading takes at
 * most a hundredth of the time, however often it is asked for; at most for 30 seconds. An error is not reused.
 */
export function reuseBriefly<T>(load: () => Promise<T>): () => Promise<T> {
  let loaded: Promise<T> | undefined;
  let validUntil = 0;
  return () => {
    const startedAt = scheduler.now();
    if (loaded && startedAt < validUntil) return loaded;
    loaded = load();
    validUntil = Infinity;
    loaded.then(
      () => {
        const now = scheduler.now();
        validUntil = now + Math.min(MAX_REUSED_MS, REUSED_FOR_COST * (now - startedAt));
      },
      () => (validUntil = 0),
    );
    return loaded;
  };
}
