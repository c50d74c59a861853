import { existsSync } from "node:fs";
import { resolve } from "node:path";
import { Rejection } from "../api/errors.ts";
import { describeEnvironment, storageOf } from "../config/config.ts";
import { ADMIN_TOKEN_OPTIONS, DATABASE_OPTIONS } from "../config/options.ts";
import type { Stores } from "../domain/ports.ts";
import { mayCall, OPERATOR_NAME, TOKEN_OPERATOR } from "../domain/operators.ts";
import { attributionOf, type Context, defineCommand, Failure } from "./command.ts";
import { confirmed, YES_OPTION } from "./operation-command.ts";
import { databaseExists } from "./operation-call.ts";
import { openQuotas } from "./quotas.ts";
import { findRunningServer } from "./running-server.ts";

export const adminUrl = defineCommand({
  name: "admin-url",
  summary: "Print a URL of the console that signs in whoever opens it first",
  description:
    "Prints the URL of the console with a code, which signs in once, within five minutes. Of several servers with this data directory, it is the one that started last; without any, it is one of those that share --limits-url. Before the URL is printed, that server has proven that it is one of this database. Treat the URL like a password.",
  options: {
    operator: {
      type: {
        placeholder: "NAME",
        expected: "the name of an operator, as petstore operators list shows it",
        parse: (text) => (OPERATOR_NAME.test(text) || text === TOKEN_OPERATOR ? text : undefined),
      },
      defaultText: "the first admin",
      help: "The operator to sign in; token for the one whose token is --admin-token",
    },
    ...DATABASE_OPTIONS,
    ...ADMIN_TOKEN_OPTIONS,
  },
  examples: ["petstore admin-url", "petstore admin-url --operator ann --env staging"],
  async run({ values }, context) {
    const { clock } = context;
    const storage = storageOf(values);
    const { openEmptyStores, openStores } = await import("../adapters.ts");
    // Without a database, no server runs either.
    const stores = await (databaseExists(storage) ? openStores(storage) : openEmptyStores());
    const servers = await openQuotas(storage, stores.keys, context);
    try {
      const server = await findRunningServer(storage, { ...stores, servers });
      const name = values.operator;
      const operatorId = name === undefined ? undefined : await operatorToSignIn(name, stores);
      const { createSignInUrl } = await import("../operator/token.ts");
      const { operators } = stores;
      const { adminUrl: url } = server;
      const options = { url, operators, clock, ...(operatorId !== undefined && { operatorId }) };
      return `${await createSignInUrl(options)}\n`;
    } finally {
      await servers.close();
      await stores.close();
    }
  },
});

async function operatorToSignIn(name: string, { operators }: Stores): Promise<number | null> {
  if (name === TOKEN_OPERATOR) return null;
  const all = await operators.listOperators();
  const operator = all.find((each) => each.name === name && each.revokedAt === undefined);
  if (operator === undefined)
    throw new Failure(`operator ${name} does not exist or is revoked; see petstore operators list`);
  if (!mayCall(operator.role, "viewer"))
    throw new Failure(`operator ${name} has the role ${operator.role}, which cannot use the console`);
  return operator.id;
}

export const adminTokenRotate = defineCommand({
  name: "admin-token rotate",
  summary: "Replace the token in the data directory",
  description:
    "Replaces the token in --data, which the first start has made for the operator admin, and ends the sessions of that operator: on running servers within a second. petstore operators rotate does so for any operator, and prints the token. A token in a variable or in a file of your own is replaced there.",
  options: { ...YES_OPTION, ...DATABASE_OPTIONS, ...ADMIN_TOKEN_OPTIONS },
  examples: ["petstore admin-token rotate", "petstore admin-token rotate --env staging --yes"],
  async run({ values, source }, context) {
    const given = source("admin-token-file") ?? source("admin-token");
    if (given) {
      throw new Failure(
        `the admin token is set by ${given.name}; replace it there, and a server that reads it from a file takes it within a second`,
      );
    }
    const storage = storageOf(values);
    const file = resolve(storage.directory.files.adminToken);
    if (!existsSync(file) || !databaseExists(storage))
      throw new Failure(`there is no token in ${file}; see petstore operators list`);
    const question = `Replace the token of ${describeEnvironment(storage)} in ${file} and end its sessions?`;
    await confirmed(question, { values, context });
    const { openStores } = await import("../adapters.ts");
    const stores = await openStores(storage);
    return rotateToken(file, stores, context).finally(() => stores.close());
  },
});

async function rotateToken(file: string, { operators, audit }: Stores, context: Context) {
  const { generateToken, readTokenFile, saveToken, toNewToken } = await import("../operator/token.ts");
  const { hash } = toNewToken(readTokenFile(file));
  const operator = await operators.findByToken(hash);
  const token = generateToken();
  const by = attributionOf(context);
  if (operator === undefined) {
    saveToken(file, token);
    await audit.recordAudit({ ...by, action: "admin.token-rolled" });
    return `Replaced the token in ${file}. A running server takes it within a second.\n`;
  }
  const { id, name } = operator;
  const rotated = await operators.rotateOperator(id, { ...toNewToken(token), replaces: hash }, by);
  if (rotated instanceof Rejection) {
    throw new Failure(
      `the token in ${file} does not work any more: it was replaced, or the operator ${name} is revoked; delete the file`,
    );
  }
  saveToken(file, token);
  return `Replaced the token of the operator ${name} in ${file}. Servers accept it within a second, and the sessions of ${name} have ended.\nSign in again with the URL that petstore admin-url prints.\n`;
}
