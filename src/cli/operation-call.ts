import { hostname } from "node:os";
import { type AnyInput, handlerOf, readBody, readQuery } from "../api/dispatch.ts";
import { describeProblems, OutcomeUnknown, pathText, Rejection } from "../api/errors.ts";
import { printable } from "../text/formatting.ts";
import { parseIdentifier } from "../api/json.ts";
import type { InputProblem } from "../api/schema.ts";
import { serverOrigin } from "../config/address-types.ts";
import { describeEnvironment, type StorageConfig, storageOf } from "../config/config.ts";
import { isLoopback } from "../config/network.ts";
import { ADMIN_TOKEN_OPTIONS, DATABASE_OPTIONS, JSON_OPTION } from "../config/options.ts";
import type { Options, ValuesOf } from "../config/parse-options.ts";
import { UsageError } from "../config/usage-error.ts";
import { file, switchOption } from "../config/value-types.ts";
import { type AnyCallInput, type CallInput, queryText, unreadableText } from "../operator/calls.ts";
import type { CommandOperationId, DataOperationId } from "../operator/handlers/data-handlers.ts";
import type { AdminContext } from "../operator/handlers/services.ts";
import {
  ADMIN_OPERATIONS,
  ADMIN_PAGE_LIMIT,
  type AdminOperation,
  type ResponseOf,
  type ServerOperationId,
} from "../operator/operations.ts";
import type { QuestionStore, ServerRegister } from "../domain/ports.ts";
import { openRegister } from "../observe/server-register.ts";
import { errorMessage } from "./arguments.ts";
import { attributionOf, type Context, type DataUse, Failure, type Input, type Outcome } from "./command.ts";
import type { OperationFlags } from "./operation-flags.ts";
import { openQuotas } from "./quotas.ts";
import { callServer, RejectedCall, UnansweredCall } from "./server-call.ts";

export const PLAIN_HTTP_OPTION = {
  "plain-http": switchOption("Send the token to an http:// URL, which everybody on the way can read"),
} as const satisfies Options;

/** The options of every command that calls an operation of operators, on this data or on a remote server. */
export const OPERATOR_OPTIONS = {
  ...DATABASE_OPTIONS,
  server: {
    type: serverOrigin,
    defaultText: "that of petstore login, or the data here",
    help: "URL of the listener for operators of a running server, such as https://admin.example.com",
  },
  ...PLAIN_HTTP_OPTION,
  ...ADMIN_TOKEN_OPTIONS,
  "admin-token-file": { type: file, help: "File with a token for --server" },
  ...JSON_OPTION,
} as const satisfies Options;

type OperatorValues = ValuesOf<typeof OPERATOR_OPTIONS>;

/** What a command parsed; `O` are options besides those of every such command. */
export type OperatorInput<O extends Options = Record<never, never>> = Omit<
  Input<Record<never, never>, O & typeof OPERATOR_OPTIONS>,
  "positionals"
>;

/** Calls an operation. Throws RejectedCall if it is rejected. */
export type CallOperator = <Id extends CommandOperationId>(
  id: Id,
  input?: CallInput<Id>,
) => Promise<ResponseOf<Id>>;

/** What a server saves when it starts: values of options by flag. A remote server has its URL only, if needed. */
export type SavedSettings = Readonly<Record<string, string>>;

/** A CallOperator whose input only the call itself checks. */
export type CallUnchecked = <Id extends CommandOperationId>(
  id: Id,
  input?: AnyCallInput,
) => Promise<ResponseOf<Id>>;

type Work = (call: CallUnchecked, saved: SavedSettings) => Promise<Outcome>;

interface WorkOptions {
  /** What the command does to the data. */
  readonly data: DataUse;
  /** Whether the URL of the API is needed. */
  readonly showsUrl?: true | undefined;
  /** The flags that set the fields of the call. */
  readonly flags?: OperationFlags;
}

interface OperatorWork extends WorkOptions {
  readonly work: Work;
  /** Called with the number of rows of a response that this release cannot read. */
  readonly onUnreadable: (rows: number) => void;
}

/** Passes to `work` the operations of a remote server, or those on the data here, which servers may use too. */
export async function withOperator(
  input: OperatorInput,
  context: Context,
  work: Work,
  options: WorkOptions = { data: "reads" },
): Promise<Outcome> {
  const { values } = input;
  let unreadableRows = 0;
  const onUnreadable = (rows: number) => {
    // --follow reads the same rows again.
    if (rows !== unreadableRows) context.warn(unreadableText(rows));
    unreadableRows = rows;
  };
  if (context.loginServer !== undefined && options.data !== "reads" && context.errorStream.isTerminal)
    context.warn(`this is on ${context.loginServer}, where you are logged in`);
  const saysWhetherDone: Work = (call, saved) =>
    work(
      async (id, calledWith) => call(id, calledWith).catch((error: unknown) => throwOutcome(id, error)),
      saved,
    );
  const operatorWork = { ...options, work: saysWhetherDone, onUnreadable };
  try {
    return values.server === undefined
      ? await withLocal(input, context, operatorWork)
      : await withRemote(values.server, input, operatorWork);
  } catch (error) {
    if (!(error instanceof RejectedCall)) throw error;
    const { message } = error;
    const { code, problems } = error.rejection;
    const nameOf = (path: InputProblem["path"]) => options.flags?.nameOf(path) ?? pathText(path);
    if (problems.length > 0) throw new UsageError(printable(describeProblems(problems, nameOf)));
    if (code === "invalid_body" || code === "invalid_parameter") throw new UsageError(message);
    if (code === "invalid_token" && context.loginServer !== undefined)
      throw new Failure(`${message} Run petstore login ${context.loginServer} again.`);
    const list = LISTS[code];
    throw list ? new Failure(`${message} See petstore ${list}; this is ${locationOf(values)}.`) : error;
  }
}

/** The command that lists what exists, by the code of the error that something does not. */
const LISTS: Readonly<Record<string, string>> = {
  key_not_found: "keys list",
  pet_not_found: "pets list",
  order_not_found: "orders list",
  operator_not_found: "operators list",
};

/** The commands that show what operations change, by the first word of their audit entries. */
const SHOWN_BY: Readonly<Record<string, string>> = {
  key: "keys list",
  pet: "pets list",
  order: "orders list",
  operator: "operators list",
  plan: "plans list",
  "ban-rules": "ban-rules show",
};

/** Throws the error of a call, and says so if the change may have been made. */
function throwOutcome(id: CommandOperationId, error: unknown): never {
  const { audited = "nothing" }: AdminOperation = ADMIN_OPERATIONS[id];
  const isUnknown = error instanceof OutcomeUnknown || error instanceof UnansweredCall;
  if (audited === "nothing" || !isUnknown) throw error;
  const [noun = "", verb = ""] = audited.split(".");
  const done = `the ${noun.replaceAll("-", " ")} ${noun.endsWith("s") ? "were" : "was"} ${verb === "rolled" ? "rotated" : verb}`;
  const reason = errorMessage(error).replace(/\.$/, "");
  throw new Failure(`${reason}; it is not known whether ${done}; see petstore ${SHOWN_BY[noun] ?? "audit"}`);
}

/** Names the environment, or the remote server. */
export function locationOf(values: OperatorValues): string {
  return values.server ?? describeEnvironment(storageOf(values));
}

async function withLocal(
  input: OperatorInput,
  context: Context,
  { work, onUnreadable, data }: OperatorWork,
): Promise<Outcome> {
  const storage = storageOf(input.values);
  const { clock, warn } = context;
  const { openStores } = await import("../adapters.ts");
  const { dataHandlers } = await import("../operator/handlers/data-handlers.ts");
  const stores = await openStores(storage, { use: data === "creates" ? "create" : "existing" });
  const quotas = await openQuotas(storage, stores, context);
  try {
    const settings = await stores.settings.readSettings();
    const policy = { current: await stores.policies.readPolicy() };
    const servers = openRegister(stores.serverReports, clock);
    const asked = { storage, questions: stores.questions, servers, onUnreadable };
    const handlers = dataHandlers({
      ...stores,
      environment: storage.environment,
      rateLimiter: quotas,
      servers,
      clock,
      policy,
      limiterMonitor: monitorOf(quotas, warn),
      // Running servers see the change within a second.
      applyKeyChanges: async () => {},
      applyOperatorChanges: () => {},
    });
    const execute = async (id: CommandOperationId, input: AnyCallInput): Promise<unknown> => {
      const checked = validated(id, input);
      if (needsServer(id)) return callRunningServer(id, input, asked);
      const handler = handlerOf<DataOperationId, [AdminContext], unknown>(handlers, id);
      return handler(checked, { by: attributionOf(context) });
    };
    return await work(async (id, input = {}) => {
      const result = await execute(id, input);
      if (result instanceof Rejection) throw new RejectedCall(result);
      // The types of the handlers and of the table say so.
      return result as ResponseOf<typeof id>;
    }, settings);
  } finally {
    await quotas.close();
    await stores.close();
  }
}

/** Says whether the quotas can be read, and warns of each problem once. */
function monitorOf(quotas: { readonly problem: string | undefined }, warn: Context["warn"]) {
  let warnedOf: string | undefined;
  return {
    get isAvailable() {
      const { problem } = quotas;
      if (problem !== undefined && problem !== warnedOf)
        warn(`${problem} (usage, strikes and bans are unknown)`);
      warnedOf = problem;
      return problem === undefined;
    },
  };
}

/** Whether only a running server can execute the operation. */
function needsServer(id: CommandOperationId): id is ServerOperationId {
  const { isOfServer }: AdminOperation = ADMIN_OPERATIONS[id];
  return isOfServer === true;
}

interface AskOptions extends Pick<OperatorWork, "onUnreadable"> {
  readonly storage: StorageConfig;
  readonly questions: QuestionStore;
  readonly servers: ServerRegister;
}

/** Asks for what only a running server knows or does: a server of this machine, or else any other. */
async function callRunningServer<Id extends ServerOperationId>(
  id: Id,
  { query }: AnyCallInput,
  { storage, questions, servers, onUnreadable }: AskOptions,
): Promise<ResponseOf<Id>> {
  const { askServers, ASK_TIMEOUT_MS } = await import("../operator/questions.ts");
  const names = new Set((await servers.list()).map(({ name }) => name));
  const machines = [hostname()].filter((name) => names.has(name));
  for (const to of names.size > machines.length ? [...machines, undefined] : machines) {
    const [response] = await askServers([to], id, { questions, query, timeoutMs: ASK_TIMEOUT_MS });
    if (response === undefined) continue;
    if (typeof response === "string") throw new Failure(printable(response));
    if (response.unreadable > 0) onUnreadable(response.unreadable);
    return response.body;
  }
  throw new Failure(`${noServer(storage, names.size > 0)}, or name another one with --server`);
}

/** Why no server has answered a command. */
export function noServer(storage: StorageConfig, isListed: boolean): string {
  const where = describeEnvironment(storage);
  return isListed
    ? `no server of ${where} answers, since it was killed or stands still; try again in 5 seconds`
    : `no server runs in ${where}; start it with petstore serve`;
}

/** Validates as the server would, so that a command says the same with --server and without. */
function validated(operationId: CommandOperationId, input: AnyCallInput): AnyInput {
  const operation: AdminOperation = ADMIN_OPERATIONS[operationId];
  const query = readQuery(queryText(input.query), operation.query ?? {});
  if (query instanceof Rejection) throw new RejectedCall(query);
  const body = operation.body && readBody(input.body ?? {}, operation.body);
  if (body instanceof Rejection) throw new RejectedCall(body);
  const id = input.id === undefined ? undefined : parseIdentifier(String(input.id));
  if (id === undefined && input.id !== undefined) throw new TypeError("the id of a call is an integer");
  return { id, query, body, bytes: undefined };
}

export function databaseExists({ databaseUrl, directory }: StorageConfig): boolean {
  return databaseUrl !== undefined || directory.hasDatabase();
}

async function withRemote(
  server: string,
  { values, source }: OperatorInput,
  { work, onUnreadable, showsUrl }: OperatorWork,
): Promise<Outcome> {
  const { "admin-token": token, env } = values;
  rejectPlainHttp(server, values);
  if (token === undefined)
    throw new UsageError(
      `${server} needs a token: run petstore login ${server}, or set PETSTORE_TOKEN or --admin-token-file`,
    );
  const remote = { server, token, onUnreadable };
  const given = source("env");
  const { environment = env } = given ? await callServer(remote, "getSession") : {};
  if (given && environment !== env)
    throw new Failure(`${given.name} is ${env}, and ${server} is ${environment}; nothing was changed`);
  const saved = showsUrl ? { "public-url": (await callServer(remote, "getServer")).publicUrl } : {};
  return work((id, input = {}) => callServer(remote, id, input), saved);
}

/** kubectl sends no token over plain HTTP either, and gh has HTTPS only. */
export function rejectPlainHttp(server: string, values: ValuesOf<typeof PLAIN_HTTP_OPTION>): void {
  const url = new URL(server);
  if (values["plain-http"] || url.protocol !== "http:" || isLoopback(url.hostname)) return;
  throw new UsageError(
    `${server} has no TLS, and everybody on the way could read the token; use https://, or --plain-http in a network that you trust`,
  );
}

interface ListPage {
  readonly items: readonly unknown[];
  readonly nextCursor?: string | null;
}

interface ReadPages<P extends ListPage> {
  /** The number of items in all. */
  readonly limit: number;
  readonly read: (page: { readonly limit: number; readonly cursor: string | undefined }) => Promise<P>;
  readonly start?: string | undefined;
  /** The most items of a page. */
  readonly pageLimit?: number;
}

/** The pages of a list, up to a number of items. `hasMore` is whether other items follow. */
export async function* pagesOf<P extends ListPage>(list: ReadPages<P>) {
  const { limit, read, start, pageLimit = ADMIN_PAGE_LIMIT.max } = list;
  let left = limit;
  for (let cursor = start; ;) {
    const { items, nextCursor }: P = await read({ limit: Math.min(left, pageLimit), cursor });
    left -= items.length;
    yield { items: items as P["items"], hasMore: Boolean(nextCursor) };
    if (!nextCursor || left <= 0) return;
    if (nextCursor === cursor) throw new Failure("the server responds with the same page again");
    cursor = nextCursor;
  }
}

/** The first items of all pages. */
export async function firstItems<P extends ListPage>(
  limit: number,
  read: ReadPages<P>["read"],
): Promise<{ readonly items: readonly P["items"][number][]; readonly hasMore: boolean }> {
  const items: P["items"][number][] = [];
  let hasMore = false;
  for await (const page of pagesOf({ limit, read })) {
    items.push(...page.items);
    ({ hasMore } = page);
  }
  return { items, hasMore };
}
