import { test } from "bun:test";
import { killAndCompare } from "./kill-and-compare.ts";

test("SIGKILL loses no entry of the audit trail of an acknowledged change or sign-in", async () => {
  await killAndCompare([]);
}, 60_000);
