import { describe } from "bun:test";
import { upgradedDataCases } from "./engines/upgrade/data-cases.ts";
import { fixtureData } from "./engines/upgrade/previous-release.ts";

describe("data of the previous release on SQLite", () =>
  upgradedDataCases("sqlite", async () => ({ data: [fixtureData()] })));
