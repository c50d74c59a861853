import { afterAll, test } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openUsageStore } from "../../src/store/sqlite/usage-store.ts";
import { rateLimiterConformance } from "../conformance/rate-limiter.ts";
import { compareWithModel } from "./model-comparison.ts";
import { openOn, openOnMaps } from "./open-memory.ts";

const folder = mkdtempSync(join(tmpdir(), "petstore-rate-limiter-"));
afterAll(() => rmSync(folder, { recursive: true }));

let files = 0;
const openOnFiles = openOn(() => {
  const path = join(folder, `${files++}.db`);
  return () => openUsageStore(path);
});

rateLimiterConformance("in process", openOnMaps);
rateLimiterConformance("in process, on SQLite", openOnFiles);

test("rate limiter and model make the same decisions in random histories", async () => {
  await compareWithModel(openOnMaps, 500);
}, 60_000);
