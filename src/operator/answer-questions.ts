import { handlerOf, readQuery, type ValidInput } from "../api/dispatch.ts";
import { type ErrorTable, Rejection, rejectionOf } from "../api/errors.ts";
import { toJson } from "../api/json.ts";
import type { Question } from "../domain/servers.ts";
import { MAX_ANSWER_LENGTH } from "../domain/size-limits.ts";
import { ErrorLog } from "../observe/error-log.ts";
import { ADMIN_ERRORS } from "./errors.ts";
import { type RunningServerServices, runningServerHandlers } from "./handlers/running-server-handlers.ts";
import {
  ADMIN_OPERATIONS,
  type AdminOperation,
  needsRunningServer,
  type RunningServerOperationId,
} from "./operations.ts";

/** Returns a function that answers the questions to this server, and those that any server may answer. */
export function answerQuestions(services: RunningServerServices): () => Promise<void> {
  const { questions, servers, log } = services;
  const handlers = runningServerHandlers(services);
  const errorLog = new ErrorLog(log);

  async function answer({ id, operation, query }: Question): Promise<void> {
    const text = answerText(await resultOf({ id, operation, query }));
    const isTooLong = text.length > MAX_ANSWER_LENGTH;
    await questions.answer(id, isTooLong ? answerText(TOO_LONG) : text);
  }

  async function resultOf({ id, operation, query: text }: Question): Promise<unknown> {
    // Whoever can write to the database can write any operation.
    if (!needsRunningServer(operation))
      return new Rejection("not_found", `this release has no operation ${operation}`);
    const { query: schemas = {} }: AdminOperation = ADMIN_OPERATIONS[operation];
    const query = readQuery(text, schemas);
    if (query instanceof Rejection) return query;
    const input: ValidInput = { id: undefined, query, body: undefined, bytes: undefined };
    try {
      return await handlerOf<RunningServerOperationId, [], unknown>(handlers, operation)(input);
    } catch (error) {
      errorLog.report(`question ${operation}`, error, { requestId: id });
      return rejectionOf(error);
    }
  }

  let free = MAX_AT_ONCE;
  return async () => {
    const most = free;
    if (most === 0) return;
    // A poll that comes while this one waits for the database takes nothing.
    free = 0;
    let taken: readonly Question[] = [];
    try {
      taken = await questions.take(servers.self.id, servers.self.name, most);
    } finally {
      free = most - taken.length;
    }
    await Promise.all(taken.map((each) => answer(each).finally(() => free++)));
  };
}

/** The most questions that are answered at once. The others wait in the database. */
const MAX_AT_ONCE = 32;

const TOO_LONG = new Rejection(
  "internal_error",
  `its answer is longer than ${MAX_ANSWER_LENGTH} characters; ask for fewer rows`,
);

function answerText(result: unknown): string {
  if (!(result instanceof Rejection)) return toJson({ body: result });
  const { code, message, problems } = result;
  const errors: ErrorTable = ADMIN_ERRORS;
  const status = errors[code]?.status ?? 500;
  return toJson({ error: { code, message, status, ...(problems.length > 0 && { problems }) } });
}
