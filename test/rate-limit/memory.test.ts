import { afterAll } from "bun:test";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openUsageStore } from "../../src/store/sqlite/index.ts";
import { limiterConformance } from "../conformance/limiter.ts";
import { openOn, openOnMaps } from "./opening.ts";

const folder = mkdtempSync(join(tmpdir(), "petstore-limiter-"));
afterAll(() => rmSync(folder, { recursive: true }));

let files = 0;
const openOnFiles = openOn(() => {
  const path = join(folder, `${files++}.db`);
  return () => openUsageStore(path);
});

limiterConformance("in process", openOnMaps);
limiterConformance("in process, on SQLite", openOnFiles);
