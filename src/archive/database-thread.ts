import { once } from "node:events";
import { parentPort, Worker } from "node:worker_threads";
import { EXECUTABLE } from "../executable.ts";
import { copySnapshot, type DatabaseFacts, inspectDatabase } from "../store/sqlite/snapshot.ts";

type Task =
  | { readonly kind: "copy"; readonly from: string; readonly to: string }
  | { readonly kind: "inspect"; readonly path: string };

interface Reply {
  readonly error?: string;
  readonly facts?: DatabaseFacts;
}

/** This file. In an executable, paths begin at the directory of all modules. */
const WORKER = EXECUTABLE === undefined ? "./database-thread.ts" : "./archive/database-thread.ts";

const POLL_MS = 100;

/** Copies and checks databases. SQLite can take minutes for a call, and this thread shows the progress meanwhile. */
export class DatabaseThread {
  readonly #worker = new Worker(new URL(WORKER, import.meta.url));

  /** As copySnapshot. `onPoll` is called several times a second until it is done. */
  async copy(from: string, to: string, onPoll: () => void): Promise<void> {
    await this.#run({ kind: "copy", from, to }, onPoll);
  }

  /** As inspectDatabase. */
  async inspect(path: string, onPoll: () => void): Promise<DatabaseFacts> {
    const { facts } = await this.#run({ kind: "inspect", path }, onPoll);
    if (facts === undefined) throw new Error(`nothing is known of ${path}`);
    return facts;
  }

  async close(): Promise<void> {
    await this.#worker.terminate();
  }

  async #run(task: Task, onPoll: () => void): Promise<Reply> {
    onPoll();
    const timer = setInterval(onPoll, POLL_MS);
    try {
      const replied = once(this.#worker, "message");
      this.#worker.postMessage(task, []);
      const [reply]: Reply[] = await replied;
      if (reply?.error !== undefined) throw new Error(reply.error);
      return reply ?? {};
    } finally {
      clearInterval(timer);
    }
  }
}

/** In the other thread; the first one has no such port. */
parentPort?.on("message", (task: Task) => parentPort?.postMessage(replyTo(task), []));

function replyTo(task: Task): Reply {
  try {
    if (task.kind === "inspect") return { facts: inspectDatabase(task.path) };
    copySnapshot(task.from, task.to);
    return {};
  } catch (error) {
    return { error: error instanceof Error ? error.message : String(error) };
  }
}
