import { expect, test } from "bun:test";
import { existsSync, readFileSync } from "node:fs";
import { getPriority } from "node:os";
import { Child } from "../../harness/child.ts";
import { cpuWaitMs, killTree, processTree, setTreePriority } from "../../harness/processes.ts";

test("setTreePriority: a process in a session of its own and its children, not this process", async () => {
  const before = getPriority();
  const child = new Child(["sh", "-c", "sleep 60 & echo started; wait"], { ownSession: true });
  await child.line(/started/);
  setTreePriority(child.pid, 7);
  const tree = processTree(child.pid);
  expect(tree).toHaveLength(2);
  expect([...tree.map((pid) => getPriority(pid)), getPriority()]).toEqual([7, 7, before]);
  const autogroup = `/proc/${child.pid}/autogroup`;
  if (existsSync(autogroup)) {
    expect(readFileSync(autogroup, "utf8")).toEndWith("nice 7\n");
    expect(readFileSync("/proc/self/autogroup", "utf8")).not.toEndWith("nice 7\n");
  }
  await killTree(child.pid);
});

test("cpuWaitMs: grows, and is not a number for a process that has ended", async () => {
  const first = cpuWaitMs(process.pid);
  await Bun.sleep(1);
  expect(cpuWaitMs(process.pid)).toBeGreaterThanOrEqual(first);
  const child = new Child(["true"]);
  await child.ended;
  expect(cpuWaitMs(child.pid)).toBeNaN();
});
