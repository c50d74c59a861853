import { expect, test } from "bun:test";
import { Child } from "../../trials/harness/child.ts";

test("a process has ended although another one holds its output open", async () => {
  const child = new Child(["sh", "-c", "sleep 30 & echo $!; exit 3"]);
  const [line] = await child.line(/^\d+$/);
  expect(await child.ended).toBe(3);
  expect(child.output).toBe(`${line}\n`);
  process.kill(Number(line));
}, 60_000);
