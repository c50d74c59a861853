/** The other thread of database-thread.ts. */
import { parentPort } from "node:worker_threads";
import { copySnapshot, inspectDatabase } from "../store/sqlite/transfer/snapshot.ts";
import type { Reply, Task } from "./database-thread.ts";

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
