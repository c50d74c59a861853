import { once } from "node:events";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { EXECUTABLE } from "../executable.ts";
import { copySnapshot, inspectDatabase } from "../store/sqlite/snapshot.ts";

/** The calls of SQLite that can take minutes. */
const CALLS = { copySnapshot, inspectDatabase };
type Calls = typeof CALLS;

/** The path of this file. In an executable, paths begin at the directory of all modules. */
const WORKER = EXECUTABLE === undefined ? "./database-thread.ts" : "./archive/database-thread.ts";

const POLL_MS = 100;

/** Calls `onPoll` several times a second until the work is done. */
export async function pollWhile<T>(work: Promise<T>, onPoll: () => void): Promise<T> {
  onPoll();
  const timer = setInterval(onPoll, POLL_MS);
  return work.finally(() => clearInterval(timer));
}

/** Calls a function in another thread while this one polls. Errors of the function are thrown here. */
export async function callInThread<Name extends keyof Calls>(
  name: Name,
  args: Parameters<Calls[Name]>,
  onPoll: () => void,
): Promise<ReturnType<Calls[Name]>> {
  const worker = new Worker(new URL(WORKER, import.meta.url), { workerData: { name, args } });
  const [result] = await pollWhile(once(worker, "message"), onPoll).finally(() => worker.terminate());
  return result;
}

if (!isMainThread) {
  const { name, args }: { name: keyof Calls; args: [path: string, to: string] } = workerData;
  parentPort?.postMessage(CALLS[name](...args), []);
}
