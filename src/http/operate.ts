import { type Refusal, Unavailable } from "../contract/errors.ts";
import { OPERATIONS, type Operation, type OperationId } from "../contract/operations.ts";
import type { Verdict } from "../domain/limits.ts";
import type { Attempt, Awaitable, Clock, Span } from "../domain/ports.ts";
import { andThen } from "./awaitable.ts";
import type { Caller } from "./callers.ts";
import type { Deadlines } from "./deadline.ts";
import { isRemoved, removalFields } from "./deprecation.ts";
import { etagOf, matches } from "./etag.ts";
import type { FaultLog } from "./faults.ts";
import type { Handlers } from "./handlers.ts";
import { type OperationInput, readInput } from "./input.ts";
import type { KeptAnswers } from "./kept.ts";
import type { Exchange } from "./pipeline.ts";
import { queryOf } from "./query.ts";
import { emptyReply, errorReply, faultReply, type HeaderFields, jsonReply, limitFields } from "./replies.ts";
import type { Route } from "./router.ts";
import { Template } from "./template.ts";

export interface Operating {
  readonly handlers: Handlers;
  /** By operation; none where the store cannot tell whether an answer still holds. */
  readonly kept: Partial<Record<OperationId, KeptAnswers>>;
  readonly deadlines: Deadlines;
  readonly clock: Clock;
  readonly faults: FaultLog;
  readonly baseUrl: string;
}

/** Answers a request that was admitted. */
export type Operate = (exchange: Exchange, caller: Caller, verdict: Verdict) => Awaitable<Response>;

/** One request for one operation. */
interface Task {
  readonly id: OperationId;
  readonly operation: Operation;
  readonly request: Bun.BunRequest<string>;
  readonly verdict: Verdict;
  /** Fields that every answer of the operation carries. */
  readonly fields: HeaderFields;
  /** What a kept answer is found by. */
  readonly words: string;
}

type AnyAnswer =
  { readonly body: string; readonly headers?: HeaderFields; readonly lastsIn?: Span } | Refusal;
/** Any of the handlers, for an input that was read by that same operation's entry in the table. */
type AnyHandler = (input: OperationInput, attempt: Attempt | undefined) => Awaitable<AnyAnswer>;

export function createOperate(operating: Operating): Operate {
  const { handlers, kept, deadlines, clock, faults, baseUrl } = operating;
  const fieldsOf = ownFields(baseUrl);

  return ({ request, method, route }, caller, verdict) => {
    if (route === undefined)
      return errorReply("not_found", "No resource lives at this path.", limitFields(verdict));
    const found = route.operations.get(method);
    if (found === undefined) return otherMethod(method, route, verdict);

    const { id, operation } = found;
    const fields = fieldsOf[id];
    if (operation.deprecated && isRemoved(operation.deprecated, clock.now())) return removed(verdict, fields);
    const words = wordsOf(operation, request);
    const known = kept[id]?.find(words);
    if (known)
      return known.template.replyUnlessKnown(verdict, request.headers.get("if-none-match"), known.etag);

    const task = { id, operation, request, verdict, fields, words };
    try {
      const reply = work(task, caller);
      return reply instanceof Promise ? deadlines.bound(reply, (error) => fault(task, error)) : reply;
    } catch (error) {
      return fault(task, error);
    }
  };

  function work(task: Task, caller: Caller): Awaitable<Response> {
    const handler = handlers[task.id] as unknown as AnyHandler;
    return andThen(readInput(task, caller), (input) =>
      "refused" in input
        ? refusal(input, task)
        : andThen(handler(input, input.attempt), (answer) => write(task, answer)),
    );
  }

  function write(task: Task, answer: AnyAnswer): Response {
    if ("refused" in answer) return refusal(answer, task);
    const { id, operation, verdict, fields, request, words } = task;
    const { status } = operation.success;
    if (operation.method !== "GET") {
      return jsonReply(status, answer.body, limitFields(verdict, fields, answer.headers));
    }
    const etag = etagOf(answer.body);
    if (answer.lastsIn && kept[id]?.isWanted(words)) {
      const template = new Template(answer.body, {
        status,
        headers: { ...fields, ...answer.headers, ETag: etag },
      });
      kept[id].keep(words, { template, etag, span: answer.lastsIn, bodyLength: answer.body.length });
    }
    const headers = limitFields(verdict, fields, answer.headers, { ETag: etag });
    return matches(request.headers.get("if-none-match"), etag)
      ? emptyReply(304, headers)
      : jsonReply(status, answer.body, headers);
  }

  function fault({ id, verdict, fields }: Task, error: unknown): Response {
    faults.report(id, error);
    const headers = limitFields(verdict, fields);
    if (!(error instanceof Unavailable)) {
      return faultReply(headers);
    }
    const retry = limitFields(verdict, fields, { "Retry-After": `${error.retryAfterSeconds}` });
    return errorReply("unavailable", "The service cannot answer right now; try again soon.", retry);
  }
}

/** What the client said besides the operation: with it, everything that decides the answer to a GET. */
function wordsOf({ identifier, query }: Operation, request: Bun.BunRequest<string>): string {
  if (identifier) return request.params[identifier.name] ?? "";
  return query ? queryOf(request.url) : "";
}

function ownFields(baseUrl: string): Readonly<Record<OperationId, HeaderFields>> {
  const entries = Object.entries<Operation>(OPERATIONS).map(([id, { deprecated }]) => [
    id,
    deprecated ? removalFields(deprecated, baseUrl) : {},
  ]);
  return Object.fromEntries(entries) as Record<OperationId, HeaderFields>;
}

function refusal({ refused, message }: Refusal, { verdict, fields }: Task): Response {
  // What is left of a body that is too large is not read: the connection cannot be used again.
  const closing = refused === "body_too_large" ? { Connection: "close" } : undefined;
  return errorReply(refused, message, limitFields(verdict, fields, closing));
}

function otherMethod(method: string, { methods }: Route, verdict: Verdict): Response {
  const headers = limitFields(verdict, { Allow: methods });
  if (method === "OPTIONS") return emptyReply(204, headers);
  return errorReply("method_not_allowed", `This path allows ${methods}, not ${method}.`, headers);
}

function removed(verdict: Verdict, fields: HeaderFields): Response {
  const headers = limitFields(verdict, fields);
  return errorReply(
    "operation_removed",
    "This operation has been removed; Link names its successor.",
    headers,
  );
}
