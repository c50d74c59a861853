import { writeSync } from "node:fs";
import { acquireLock, openStore } from "../../src/store/sqlite/index.ts";

/**
 * What another process does in the tests of the SQLite store: `bun sqlite-child.ts TASK PATH`. Says each thing that
 * the test waits for on a line of its own, at once.
 */
const [task = "", path = ""] = process.argv.slice(2);
const say = (line: string) => writeSync(1, `${line}\n`);

async function open(): Promise<void> {
  say("ready");
  await Bun.stdin.stream().getReader().read();
  const { keys, close } = openStore(path);
  await keys.createKey(
    { name: "child", plan: "free", createdAt: 0 },
    process.pid.toString().padStart(64, "0"),
  );
  await close();
}

/** Thirty-two writers that never pause, each framing an identifier after it was answered. */
async function write(): Promise<void> {
  const { store } = openStore(path);
  const writer = async (n: number) => {
    for (let i = 0; ; i++) {
      const answer = await store.createPet({ name: `writer ${n}, pet ${i}`, categoryId: BigInt(i) }, 0);
      if ("id" in answer) say(String(answer.id));
    }
  };
  await Promise.all(Array.from({ length: 32 }, (_, n) => writer(n)));
}

/** As an operator's commands do: each opens the store, makes one change, and closes it. */
async function command(): Promise<void> {
  for (let n = 0; n < 20; n++) {
    const { keys, close } = openStore(path);
    await keys.createKey({ name: "child", plan: "free", createdAt: 0 }, `${n}`.padStart(64, "0"));
    await close();
  }
}

async function hold(): Promise<void> {
  say(acquireLock(path) === undefined ? "refused" : "held");
  await Bun.stdin.stream().getReader().read();
}

const tasks: Record<string, () => Promise<void>> = { open, write, command, hold };
await tasks[task]?.();
