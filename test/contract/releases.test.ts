import { describe, expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import packageJson from "../../package.json" with { type: "json" };
import { DOCUMENTED_DEFAULTS } from "../../src/cli/documented-defaults.ts";
import { openApiJson } from "../../src/petstore/openapi/document.ts";
import { type Contract, contractOf, incompatibilities } from "./compatibility.ts";

/*
 * The OpenAPI document of each release since 1.0.0, as `petstore openapi` of that release printed it. After a release:
 * petstore openapi | gzip -9n > test/contract/releases/VERSION.json.gz
 */
const DIRECTORY = join(import.meta.dir, "releases");
const SUFFIX = ".json.gz";
const RELEASES = readdirSync(DIRECTORY).map((name) => name.slice(0, -SUFFIX.length));

const contractIn = (text: string) => contractOf(JSON.parse(text));
const ofRelease = (version: string) =>
  contractIn(new TextDecoder().decode(Bun.gunzipSync(readFileSync(join(DIRECTORY, `${version}${SUFFIX}`)))));
const CURRENT = contractIn(openApiJson(DOCUMENTED_DEFAULTS));

test("the document of every release before this one is kept", () => {
  const changelog = readFileSync(join(import.meta.dir, "../../CHANGELOG.md"), "utf8");
  const released = [...changelog.matchAll(/^## (\d+\.\d+\.\d+) /gm)].map(([, version = ""]) => version);
  const kept = released.filter((version) => Bun.semver.order(version, "1.0.0") >= 0);
  expect(kept.filter((version) => version !== packageJson.version)).toEqual(
    RELEASES.filter((version) => version !== packageJson.version)
      .toSorted(Bun.semver.order)
      .toReversed(),
  );
});

test.each(RELEASES)(
  "what %s promised to clients still holds: within /v1 there are only additions",
  (version) => {
    expect(incompatibilities(ofRelease(version), CURRENT)).toEqual([]);
  },
);

describe("what would break a client is named", () => {
  /** The current contract after a change, seen by a client of the contract before it. */
  function broken(change: (contract: Contract) => void) {
    const changed = structuredClone(CURRENT);
    change(changed);
    return incompatibilities(CURRENT, changed);
  }
  const operation = (contract: Contract, name: string) => {
    const found = contract[name];
    if (found === undefined) throw new Error(`no operation ${name}`);
    return found;
  };

  test("an operation that is gone, or has another identifier", () => {
    expect(broken((contract) => delete contract["GET /key"])).toEqual(["GET /key is gone"]);
    expect(broken((contract) => (operation(contract, "GET /key").operationId = "key"))).toEqual([
      "GET /key: operationId getKey is now key",
    ]);
  });

  test("a parameter that is gone, narrower or newly required", () => {
    expect(
      broken((contract) => {
        const { parameters } = operation(contract, "GET /pets");
        delete parameters["query status"];
        parameters["query name"] = { isRequired: true, schema: { type: "string" } };
        const limit = parameters["query limit"];
        if (limit) limit.schema = { ...limit.schema, maximum: 50 };
      }),
    ).toEqual([
      "GET /pets query status is gone",
      "GET /pets query limit: maximum 100 is now 50",
      "GET /pets query name is newly required",
    ]);
  });

  test("a field of a request that is gone, or newly required", () => {
    expect(
      broken((contract) => {
        const { body } = operation(contract, "POST /pets");
        body.properties = { name: body.properties?.["name"] ?? {}, kind: { type: "string" } };
        body.required = ["name", "kind"];
      }),
    ).toEqual([
      "POST /pets body: categoryId is gone",
      "POST /pets body: status is gone",
      "POST /pets body: kind is newly required",
    ]);
  });

  test("a status, a header, a field or a code of a response that is gone", () => {
    expect(
      broken((contract) => {
        const { responses } = operation(contract, "GET /pets/{petId}");
        delete responses["304"];
        delete responses["200"]?.headers["ETag"];
        delete responses["200"]?.schema.properties?.["status"];
        const notFound = responses["404"]?.schema.properties?.["code"];
        if (notFound) notFound.enum = ["not_found"];
      }),
    ).toEqual([
      "GET /pets/{petId} 304 is gone",
      "GET /pets/{petId} 200 header ETag is gone",
      "GET /pets/{petId} 200: status is gone",
      "GET /pets/{petId} 404 code: pet_not_found is gone",
    ]);
  });

  test("a field of a response that has another type, or is no longer always there", () => {
    expect(
      broken((contract) => {
        const schema = operation(contract, "GET /pets").responses["200"]?.schema.items;
        if (schema?.properties === undefined) throw new Error("no list");
        schema.properties["name"] = { type: "integer" };
        schema.required = ["id", "name"];
      }),
    ).toEqual([
      "GET /pets 200[] name: type string is now integer",
      "GET /pets 200[]: categoryId can be missing",
    ]);
  });
});
