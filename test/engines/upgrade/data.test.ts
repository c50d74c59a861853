import { describe } from "bun:test";
import { temporaryFolder } from "../../../trials/harness/cleanup.ts";
import { valkeyUrl } from "../../../trials/harness/valkey.ts";
import { upgradedDataCases } from "./data-cases.ts";
import { fixtureDatabase } from "./fixture-database.ts";

describe("data of the previous release on PostgreSQL", () =>
  upgradedDataCases("postgres", async () => ({
    data: [temporaryFolder("data")],
    "database-url": [await fixtureDatabase()],
    "limits-url": [await valkeyUrl()],
    "limits-timeout": ["1s"],
  })));
