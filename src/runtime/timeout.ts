import { scheduler } from "./scheduler.ts";

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
