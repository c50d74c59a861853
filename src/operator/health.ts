import type { Request, Response } from "../http1/index.ts";
import { adminTextResponse } from "./responses.ts";

/** Rejects or returns false while the server is not ready, by the name of the check. */
export type ReadinessChecks = Readonly<Record<string, () => Promise<boolean> | boolean>>;

/** Shorter than the default timeout of a Kubernetes probe, which is a second. */
const CHECK_TIMEOUT_MS = 800;

/**
 * Checks that several requests share while they run. Whoever can reach the listener can send any number of requests
 * without a token, and the database has a bounded number of connections.
 */
export function sharedChecks(checks: ReadinessChecks): ReadinessChecks {
  return Object.fromEntries(
    Object.entries(checks).map(([name, check]) => [name, shared(() => passes(check))]),
  );
}

function shared(check: () => Promise<boolean>): () => Promise<boolean> {
  let running: Promise<boolean> | undefined;
  return () => (running ??= check().finally(() => (running = undefined)));
}

/**
 * 200 if every check passes, 503 otherwise, in the format of Kubernetes' own /readyz: `?verbose` lists the checks, and
 * `?exclude=NAME` leaves one out.
 */
export async function readyResponse(request: Request, checks: ReadinessChecks): Promise<Response> {
  const query = new URLSearchParams(request.query);
  const excluded = query.getAll("exclude");
  const included = Object.entries(checks).filter(([name]) => !excluded.includes(name));
  const results = await Promise.all(
    included.map(async ([name, check]) => [name, await passes(check)] as const),
  );
  const isReady = results.every(([, isPassed]) => isPassed);
  const isVerbose = query.has("verbose") || !isReady;
  const lines = results.map(([name, isPassed]) => (isPassed ? `[+]${name} ok\n` : `[-]${name} failed\n`));
  const verdict = isReady ? "ok\n" : "not ready\n";
  return adminTextResponse(isReady ? 200 : 503, isVerbose ? lines.join("") + verdict : verdict);
}

async function passes(check: () => Promise<boolean> | boolean): Promise<boolean> {
  let timer: Timer | undefined;
  const timeout = new Promise<boolean>((resolve) => {
    timer = setTimeout(() => resolve(false), CHECK_TIMEOUT_MS);
  });
  try {
    return await Promise.race([Promise.try(check), timeout]);
  } catch {
    return false;
  } finally {
    clearTimeout(timer);
  }
}
