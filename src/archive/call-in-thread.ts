import { scheduler } from "../runtime/scheduler.ts";
import { DatabaseThread, type ThreadCallName, type ThreadCalls } from "../store/sqlite/database-thread.ts";

const POLL_MS = 100;

/** Calls `onPoll` now, several times a second, and when the work is done. */
export async function pollWhile<T>(work: Promise<T>, onPoll: () => void): Promise<T> {
  onPoll();
  const timer = scheduler.setInterval(onPoll, POLL_MS);
  const result = await work.finally(() => void timer.close());
  onPoll();
  return result;
}

/** Calls a function in a thread of its own while this one polls. Errors of the function are thrown here. */
export async function callInThread<Name extends ThreadCallName>(
  name: Name,
  args: Parameters<ThreadCalls[Name]>,
  onPoll: () => void,
): Promise<ReturnType<ThreadCalls[Name]>> {
  const thread = new DatabaseThread();
  return pollWhile(thread.call(name, args), onPoll).finally(() => thread.close());
}
