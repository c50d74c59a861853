import { isMainThread, parentPort, Worker } from "node:worker_threads";
import { Unavailable } from "../../api/errors.ts";
import { messageOf } from "../../runtime/message-of.ts";
import { EXECUTABLE } from "../../executable.ts";
import type { Statement } from "../sql/steps.ts";
import { closeCheckpoints, copyLog, restartLog } from "./checkpoint.ts";
import type { Connection } from "./connection.ts";
import { openForReads } from "./database-file.ts";
import { copySnapshot, inspectDatabase } from "./snapshot.ts";

/** The calls of SQLite that can take long. They run in a thread, so that the event loop continues. */
const CALLS = { copySnapshot, inspectDatabase, readRows, copyLog, restartLog };
export type ThreadCalls = typeof CALLS;
export type ThreadCallName = keyof ThreadCalls;

/** What the thread sends after a call. A class other than Error does not survive on the way. */
type Reply =
  | { readonly result: ReturnType<ThreadCalls[ThreadCallName]> }
  | { readonly error: unknown; readonly isTransient: boolean };

/** The path of this file. In an executable, paths begin at the directory of all modules. */
const WORKER = EXECUTABLE === undefined ? "./database-thread.ts" : "./store/sqlite/database-thread.ts";

/** A thread that runs one call at a time. It keeps the process from ending until it is closed. */
export class DatabaseThread {
  readonly #worker = new Worker(new URL(WORKER, import.meta.url));
  /** Resolves when the thread has ended. */
  readonly ended: Promise<void>;
  #onReply: ((reply: Reply) => void) | undefined;

  constructor() {
    const { promise, resolve } = Promise.withResolvers<void>();
    this.ended = promise;
    this.#worker.on("message", (reply: Reply) => this.#reply(reply));
    this.#worker.on("error", (error) => this.#reply({ error, isTransient: true }));
    this.#worker.on("exit", () => {
      this.#reply({ error: new Error("the thread has ended"), isTransient: true });
      resolve();
    });
  }

  call<Name extends ThreadCallName>(
    name: Name,
    args: Parameters<ThreadCalls[Name]>,
  ): Promise<ReturnType<ThreadCalls[Name]>> {
    return new Promise((resolve, reject) => {
      this.#onReply = (reply) => {
        // The thread has called the function of this name.
        if ("result" in reply) resolve(reply.result as ReturnType<ThreadCalls[Name]>);
        else reject(errorOf(reply));
      };
      this.#worker.postMessage({ name, args }, []);
    });
  }

  #reply(reply: Reply): void {
    const onReply = this.#onReply;
    this.#onReply = undefined;
    onReply?.(reply);
  }

  /** Ends the thread after the call that runs. SQLite cannot be interrupted from another thread. */
  close(): Promise<void> {
    this.#worker.postMessage(null, []);
    return this.ended;
  }
}

function errorOf({ error, isTransient }: Extract<Reply, { error: unknown }>): unknown {
  return isTransient ? new Unavailable(messageOf(error), { cause: error }) : error;
}

let reader: Connection | undefined;

/** Runs a statement that reads. The connection stays open for the next one, which is about the same database. */
function readRows(path: string, statement: Statement): unknown[] {
  reader ??= openForReads(path);
  return reader.rows(statement);
}

interface Call {
  readonly name: ThreadCallName;
  readonly args: [path: string, other: never];
}

function replyTo({ name, args }: Call): Reply {
  try {
    return { result: CALLS[name](...args) };
  } catch (error) {
    return { error, isTransient: error instanceof Unavailable };
  }
}

if (!isMainThread) {
  parentPort?.on("message", (call: Call | null) => {
    if (call !== null) return parentPort?.postMessage(replyTo(call), []);
    reader?.close();
    closeCheckpoints();
    process.exit();
  });
}
