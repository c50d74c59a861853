import { expect, test } from "bun:test";
import { readdirSync, readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { ADMIN_OPERATIONS, type AdminOperationId } from "../../src/operator/operations.ts";
import { testChangingOperations } from "./operation-cases.ts";

/* An operation that is in the table works, and people can call it. */

await testChangingOperations();

/** Why no command, or no page, calls an operation. */
const WITHOUT: { readonly [front: string]: { readonly [Id in AdminOperationId]?: string } } = {
  cli: {
    beginSignIn: "a browser goes to the provider",
    createSignInCode: "the console makes it for `login`",
    deleteSessions: "a command sends its token",
    getOverview: "live plots are for the console; `usage` and `servers list` have the figures",
    getSeries: "servers ask one another for it",
    listBans: "`keys list --state banned` shows them",
  },
  console: {
    getSeries: "the overview has the series of all servers",
    getUsage: "the overview has the keys with the most requests",
    listBans: "the list of keys shows them by their state",
  },
};

/** A call with its identifier. `may("id")` is none. */
const CALL = /\b(?:call|useCall|callServer|keyChange)\((?:remote, )?"(\w+)"/g;
/** A row of a table whose user calls the operation. */
const ROW = /\boperation: "(\w+)"/g;
const COMMAND = /\b(?:operation|list)Command[<(]/;
/** A command with a `request` of its own calls nothing by itself. */
const REQUEST = /\n +(?:async )?request[(:]/;

function operationsCalledIn(directory: string): ReadonlySet<string | undefined> {
  const root = resolve(import.meta.dir, "../../src", directory);
  const names = readdirSync(root, { recursive: true, encoding: "utf8" });
  const files = names
    .filter((name) => /\.tsx?$/.test(name))
    .map((name) => readFileSync(join(root, name), "utf8"));
  const rows = files.flatMap((text) => text.split(COMMAND)).filter((part) => !REQUEST.test(part));
  const matches = [...files.join("\n").matchAll(CALL), ...rows.join("\n").matchAll(ROW)];
  return new Set(matches.map(([, id]) => id));
}

test.each(Object.entries(WITHOUT))(
  "src/%s calls every operation, or a reason says why not",
  (front, without) => {
    const called = operationsCalledIn(front);
    const uncalled = Object.keys(ADMIN_OPERATIONS).filter((operation) => !called.has(operation));
    expect(uncalled.toSorted()).toEqual(Object.keys(without).toSorted());
  },
);
