import { describe } from "bun:test";
import { upgradedDataCases } from "./engines/upgrade/data-cases.ts";
import { fixtureData } from "./engines/upgrade/previous-release.ts";

describe.each(["1.3.0"] as const)("data of release %s on SQLite", (release) =>
  upgradedDataCases("sqlite", release, async () => ({ data: [fixtureData(release)] })),
);
