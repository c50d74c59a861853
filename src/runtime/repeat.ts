import { type Scheduler, scheduler, type ScheduledTimer } from "./scheduler.ts";

export interface RepeatedWork {
  /** Resolves after the run in progress, if there is one. */
  close(): Promise<void>;
}

/** Runs the work after `firstMs`, and each time again after as many milliseconds as the work resolves to. */
export function repeat(
  firstMs: number,
  work: () => Promise<number>,
  timers: Pick<Scheduler, "setTimeout"> = scheduler,
): RepeatedWork {
  let isClosed = false;
  let running = Promise.resolve();
  let timer = after(firstMs);

  function after(ms: number): ScheduledTimer {
    const next = timers.setTimeout(() => (running = run()), ms);
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
