import { useEffect, useState } from "preact/hooks";
import { toJson } from "../api/json.ts";
import {
  type AdminOperationId,
  call,
  type CallInputOf,
  errorOf,
  type ResponseOf,
  RejectedRequest,
  ServerUnreachable,
} from "./admin-api.ts";
import { updateState } from "./state.ts";
import { keepUnchanged } from "./unchanged.ts";

/** How often everything on the screen is loaded again. */
const INTERVAL_MS = 2_000;
const MAX_RETRY_MS = 16_000;

/** One timer for all of them, so that there is one countdown when the server is gone. */
const polls = new Set<() => Promise<void>>();
let timer: ReturnType<typeof setTimeout> | undefined;
let retryMs = INTERVAL_MS;

/** Called for each request; the function that it returns says whether none of the later ones was finished before. */
function inOrder(): () => () => boolean {
  let [asked, latest] = [0, 0];
  return () => {
    const number = ++asked;
    return () => number > latest && (latest = number) === number;
  };
}

const startRound = inOrder();
/** What went wrong with parts of the page that may be loaded later. */
const failures = new Map<object, string>();

/** Whether the same call may succeed later: the error is of the server or of this page, not of what was asked for. */
export const isTransient = (error: Error): boolean =>
  !(error instanceof RejectedRequest) || error.status >= 429;

function reportFailure(poll: object, error: Error | undefined): void {
  if (error !== undefined && isTransient(error)) failures.set(poll, error.message);
  else failures.delete(poll);
  const [failure] = failures.values();
  updateState({ failure });
}

/** Loads everything on the screen again: after a change, and when the person asks for it. */
export async function refresh(): Promise<void> {
  clearTimeout(timer);
  const isNewest = startRound();
  const results = await Promise.allSettled([...polls].map((poll) => poll()));
  if (!isNewest()) return;
  const isLost = results.some((result) => result.status === "rejected");
  updateState({ retryAt: isLost ? Date.now() + retryMs : undefined });
  schedule(isLost ? retryMs : INTERVAL_MS);
  retryMs = isLost ? Math.min(retryMs * 2, MAX_RETRY_MS) : INTERVAL_MS;
}

function schedule(delayMs: number): void {
  clearTimeout(timer);
  timer = setTimeout(() => {
    // A page that nobody looks at asks for nothing; it continues when it is shown.
    if (!document.hidden) void refresh();
  }, delayMs);
}

export function startPolling(): void {
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) void refresh();
  });
  schedule(INTERVAL_MS);
}

interface Loaded<T> {
  /** The last that was loaded; that of other parameters until the new ones have a response. */
  readonly data?: T;
  /** What went wrong, if the server responded with an error. */
  readonly error?: Error;
  /** What was asked for, as text. */
  readonly request: string;
}

export interface Polled<T> extends Loaded<T> {
  /** Whether `data` belongs to earlier parameters. */
  readonly isStale: boolean;
}

interface Receiver<T> {
  readonly onData: (data: T) => void;
  readonly onError?: (error: Error) => void;
}

/**
 * `request` names what `load` loads: another request is sent at once, the same one every two seconds. A response that
 * arrives after that of a later request is left out.
 */
export function usePolling<T>(
  request: string,
  load: () => Promise<T>,
  { onData, onError }: Receiver<T>,
): void {
  useEffect(() => {
    let isCurrent = true;
    const startRequest = inOrder();
    const poll = async () => {
      const isNewest = startRequest();
      const receive = (problem: Error | undefined, report: () => void) => {
        if (!isCurrent || !isNewest()) return;
        reportFailure(poll, problem);
        report();
      };
      try {
        const data = await load();
        receive(undefined, () => onData(data));
      } catch (error) {
        if (error instanceof ServerUnreachable) throw error;
        const problem = errorOf(error);
        receive(problem, () => onError?.(problem));
      }
    };
    polls.add(poll);
    poll().catch(() => refresh());
    return () => {
      isCurrent = false;
      polls.delete(poll);
      reportFailure(poll, undefined);
    };
  }, [request]);
}

/** What was polled, and what went wrong. */
export function usePolled<T>(request: string, load: () => Promise<T>): Polled<T> {
  const [loaded, setLoaded] = useState<Loaded<T>>({ request });
  usePolling(request, load, {
    onData: (data) => setLoaded((last) => withData(last, request, data)),
    onError: (error) => setLoaded((last) => withError(last, request, error)),
  });
  return { ...loaded, isStale: loaded.request !== request };
}

/** Returns `last` if nothing has changed: then nothing is rendered. */
function withData<T>(last: Loaded<T>, request: string, loaded: T): Loaded<T> {
  const data = keepUnchanged(last.data, loaded);
  return last.request === request && last.error === undefined && last.data === data
    ? last
    : { request, data };
}

/** The data of the same parameters stay on the screen. */
function withError<T>(last: Loaded<T>, request: string, error: Error): Loaded<T> {
  if (last.request !== request) return { request, error };
  return last.error?.message === error.message ? last : { ...last, error };
}

/** The response of an operation, which is called again every two seconds. */
export function useCall<Id extends AdminOperationId>(
  operationId: Id,
  input: CallInputOf<Id> = {},
): Polled<ResponseOf<Id>> {
  return usePolled(`${operationId} ${toJson(input)}`, () => call(operationId, input));
}
