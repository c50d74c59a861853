import { once } from "node:events";
import { isMainThread, parentPort, Worker, workerData } from "node:worker_threads";
import { EXECUTABLE } from "../executable.ts";
import { copySnapshot, type DatabaseFacts, inspectDatabase } from "../store/sqlite/snapshot.ts";

/** Paths of databases: without `to`, the one that is inspected. */
interface Task {
  readonly from: string;
  readonly to?: string;
}

/** This file. In an executable, paths begin at the directory of all modules. */
const WORKER = EXECUTABLE === undefined ? "./database-thread.ts" : "./archive/database-thread.ts";

const POLL_MS = 100;

/** Calls `onPoll` several times a second until the work is done. */
export async function polled<T>(work: Promise<T>, onPoll: () => void): Promise<T> {
  onPoll();
  const timer = setInterval(onPoll, POLL_MS);
  return work.finally(() => clearInterval(timer));
}

/** As copySnapshot. SQLite can take minutes for a call, so this thread polls, and another one calls it. */
export async function copyInThread(from: string, to: string, onPoll: () => void): Promise<void> {
  await runInThread({ from, to }, onPoll);
}

/** As inspectDatabase. */
export async function inspectInThread(from: string, onPoll: () => void): Promise<DatabaseFacts> {
  const facts = await runInThread({ from }, onPoll);
  if (facts === undefined) throw new Error(`nothing is known of ${from}`);
  return facts;
}

async function runInThread(task: Task, onPoll: () => void): Promise<DatabaseFacts | undefined> {
  const worker = new Worker(new URL(WORKER, import.meta.url), { workerData: task });
  const replied: Promise<(DatabaseFacts | undefined)[]> = once(worker, "message");
  const [reply] = await polled(replied, onPoll).finally(() => worker.terminate());
  return reply;
}

/** In the other thread. What it throws is what the first one gets. */
function run({ from, to }: Task): DatabaseFacts | undefined {
  if (to === undefined) return inspectDatabase(from);
  copySnapshot(from, to);
  return undefined;
}

if (!isMainThread) parentPort?.postMessage(run(workerData), []);
