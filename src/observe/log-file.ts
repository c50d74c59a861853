import { constants } from "node:fs";
import { type FileHandle, open, stat } from "node:fs/promises";
import type { LineOutput } from "./line-writer.ts";

const { O_APPEND, O_CREAT, O_WRONLY } = constants;

/** A file to append to. A new file is for its owner alone; one that exists keeps its mode. */
export async function openLogFile(path: string): Promise<LineOutput> {
  let handle = await openForAppend(path).catch((cause: unknown) => {
    throw new Error("cannot open the access log", { cause });
  });
  return {
    write: async (bytes) => (await handle.write(bytes)).bytesWritten,
    async followRotation() {
      if (await isAt(handle, path)) return;
      const previous = handle;
      handle = await openForAppend(path);
      await previous.close();
    },
    close: () => handle.close(),
  };
}

function openForAppend(path: string): Promise<FileHandle> {
  return open(path, O_APPEND | O_CREAT | O_WRONLY, 0o600);
}

/** Whether the path still leads to the open file. */
async function isAt(handle: FileHandle, path: string): Promise<boolean> {
  const [opened, named] = await Promise.all([handle.stat(), stat(path).catch(() => undefined)]);
  return named !== undefined && named.ino === opened.ino && named.dev === opened.dev;
}
