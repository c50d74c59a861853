export interface ScheduledTimer {
  close(): unknown;
  /** Lets the process end before the timer fires. */
  unref(): unknown;
}

/** Time, timers, random numbers and iterations of the event loop. A simulation determines all of them by a seed. */
export interface Scheduler {
  /** Returns milliseconds of a monotonic clock. */
  now(): number;
  /** Returns a number from 0 to below 1. */
  random(): number;
  setTimeout(work: () => void, ms: number): ScheduledTimer;
  setInterval(work: () => void, ms: number): ScheduledTimer;
  setImmediate(work: () => void): void;
  /** Runs the work when all sockets that were ready have been read, and before work that has yielded. */
  atEndOfIteration(work: () => void): void;
  sleep(ms: number): Promise<void>;
  /** Resolves after other work of the event loop. */
  yield(): Promise<void>;
}

/** The scheduler of this process. It looks up the globals at each call, because tests replace them. */
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

export interface RepeatedWork {
  /** Resolves after the run in progress, if there is one. */
  close(): Promise<void>;
}

/** Runs the work after `firstMs`, and each time again after as many milliseconds as the work resolves to. */
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

/** Settles as `work` does, or rejects with `Late` after `ms`. */
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

/** Lets other work of the event loop run before the caller continues. */
export function yieldToEventLoop(): Promise<void> {
  return new Promise((resolve) => {
    setImmediate(() => {
      finishIteration();
      resolve();
    });
  });
}

/** Returns a function that resolves once in each iteration of the event loop, in the order of its calls. */
export function takingTurns(): () => Promise<void> {
  let last = Promise.resolve();
  return () => (last = last.then(yieldToEventLoop));
}

/** A value or a promise of it. An embedded database returns values, so its requests wait for no promise. */
export type Awaitable<T> = T | Promise<T>;

/** Continues with a value, at once, or with the value of a promise. */
export function andThen<T, R>(value: Awaitable<T>, next: (value: T) => Awaitable<R>): Awaitable<R> {
  return value instanceof Promise ? value.then(next) : next(value);
}

/** Runs `work`, and turns an error that it throws or rejects with into a value. */
export function recover<T>(work: () => Awaitable<T>, onError: (error: unknown) => T): Awaitable<T> {
  try {
    const value = work();
    return value instanceof Promise ? value.catch(onError) : value;
  } catch (error) {
    return onError(error);
  }
}

/** Loads a value at the first call and keeps it. After an error, the next call loads again. */
export function loadOnce<T>(load: () => Awaitable<T>): () => Awaitable<T> {
  return loadFor(() => undefined, load);
}

/** Loads a value as loadOnce does, and loads again when the key is another one than before. */
export function loadFor<K, T>(keyOf: () => K, load: (key: K) => Awaitable<T>): () => Awaitable<T> {
  let loaded: { readonly key: K; value: Awaitable<T> } | undefined;
  return () => {
    const key = keyOf();
    if (loaded !== undefined && loaded.key === key) return loaded.value;
    const loading = { key, value: load(key) };
    loaded = loading;
    if (loading.value instanceof Promise) {
      loading.value.then(
        (settled) => (loading.value = settled),
        () => (loaded = loaded === loading ? undefined : loaded),
      );
    }
    return loading.value;
  };
}

const WORK_EVERY_MS = 600_000;
/** The pause between two parts of the work. */
const PAUSE_MS = 100;

/**
 * Works every ten minutes, a little at a time, so that no request waits for long. `workSome` resolves to
 * whether more remains. After an error, the next attempt follows ten minutes later.
 */
export function workRegularly(
  workSome: () => Promise<boolean>,
  onError: (error: unknown) => void,
): RepeatedWork {
  return repeat(PAUSE_MS, async () => {
    try {
      return (await workSome()) ? PAUSE_MS : WORK_EVERY_MS;
    } catch (error) {
      onError(error);
      return WORK_EVERY_MS;
    }
  });
}

const REUSED_FOR_COST = 100;
const MAX_REUSED_MS = 30_000;
/** What loading costs as far as nobody knows. */
const USUAL_COST_MS = 20;

/**
 * Loads a value and reuses it for a hundred times as long as loading took, at most 30 seconds. So loading takes at most
 * a hundredth of the time, however often the value is used. Of the last two times the shorter one counts: the start of
 * a thread, or a busy moment, is no cost of the value. After an error, the next call loads again.
 */
export function reuseBriefly<T>(load: () => Promise<T>): () => Promise<T> {
  let loaded: Promise<T> | undefined;
  let validUntil = 0;
  let lastCostMs = USUAL_COST_MS;
  return () => {
    const startedAt = scheduler.now();
    if (loaded && startedAt < validUntil) return loaded;
    loaded = load();
    validUntil = Infinity;
    loaded.then(
      () => {
        const now = scheduler.now();
        const costMs = now - startedAt;
        validUntil = now + Math.min(MAX_REUSED_MS, REUSED_FOR_COST * Math.min(costMs, lastCostMs));
        lastCostMs = costMs;
      },
      () => (validUntil = 0),
    );
    return loaded;
  };
}
