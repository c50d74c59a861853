import { once } from "node:events";
import { Worker } from "node:worker_threads";
import { EXECUTABLE } from "../executable.ts";
import type { DatabaseFacts } from "../store/sqlite/transfer/snapshot.ts";

export type Task =
  | { readonly kind: "copy"; readonly from: string; readonly to: string }
  | { readonly kind: "inspect"; readonly path: string };

export interface Reply {
  readonly error?: string;
  readonly facts?: DatabaseFacts;
}

/** In an executable, paths begin at the folder of all modules. */
const WORKER = EXECUTABLE === undefined ? "./database-worker.ts" : "./backup/database-worker.ts";

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
