import { type Refusal, Unavailable } from "../contract/errors.ts";
import { OPERATIONS, type Operation, type OperationId } from "../contract/operations.ts";
import { DAY_MS, type Verdict } from "../domain/limits.ts";
import type { Awaitable, Clock, Span } from "../domain/ports.ts";
import { etagOf } from "../etag.ts";
import type { Caller } from "./callers.ts";
import type { Condition } from "./condition.ts";
import type { Deadlines } from "./deadline.ts";
import { removalFields } from "./deprecation.ts";
import type { FaultLog } from "./faults.ts";
import type { Handlers } from "./handlers.ts";
import { type OperationInput, readInput } from "./input.ts";
import type { KeptAnswers } from "./kept.ts";
import { queryOf } from "./query.ts";
import { emptyReply, errorReply, faultReply, type HeaderFields, limitFields } from "./replies.ts";
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
export type Operate = (
  request: Bun.BunRequest<string>,
  route: Route | undefined,
  caller: Caller,
  verdict: Verdict,
) => Awaitable<Response>;

/** Everything that serves one operation, put together once. */
interface Desk {
  readonly id: OperationId;
  readonly operation: Operation;
  readonly handler: AnyHandler;
  readonly kept: KeptAnswers | undefined;
  /** Fields that every answer of the operation carries. */
  readonly fields: HeaderFields;
  readonly template: Template;
  /** When the operation is removed; never, as a rule. */
  readonly goneAt: number;
}

/** One request at its desk. */
interface Task {
  readonly desk: Desk;
  readonly request: Bun.BunRequest<string>;
  readonly verdict: Verdict;
  /** What a kept answer is found by. */
  readonly words: string;
}

type AnyAnswer =
  | {
      readonly body: string;
      readonly headers?: HeaderFields;
      readonly etag?: string;
      readonly lastsIn?: Span;
    }
  | Refusal;
/** Any of the handlers, for an input that was read by that same operation's entry in the table. */
type AnyHandler = (input: OperationInput) => Awaitable<AnyAnswer>;

export function createOperate(operating: Operating): Operate {
  const { deadlines, clock, faults } = operating;
  const desks = desksOf(operating);

  return (request, route, caller, verdict) => {
    if (route === undefined)
      return errorReply("not_found", "No resource lives at this path.", limitFields(verdict));
    const id = route.operations.get(request.method);
    if (id === undefined) return otherMethod(request.method, route, verdict);

    const desk = desks[id];
    if (hasGone(desk, verdict)) return removed(verdict, desk.fields);
    const words = wordsOf(desk.operation, request);
    const known = desk.kept?.find(words);
    if (known) return known.template.replyUnlessKnown(known.body, verdict, condition(request, known.etag));

    const task = { desk, request, verdict, words };
    try {
      const reply = work(task, caller);
      return reply instanceof Promise ? deadlines.bound(reply, (error) => fault(task, error)) : reply;
    } catch (error) {
      return fault(task, error);
    }
  };

  /**
   * The clock takes its time, and is not asked before the end is near: the caller's window ends later than now, by a
   * clock that is less than a day behind this one.
   */
  function hasGone({ goneAt }: Desk, { resetAt }: Verdict): boolean {
    return resetAt * 1000 + DAY_MS >= goneAt && clock.now() >= goneAt;
  }

  function work(task: Task, caller: Caller): Awaitable<Response> {
    const { desk, request, words } = task;
    const input = readInput({ request, operation: desk.operation, words }, caller);
    return input instanceof Promise ? input.then((read) => handle(task, read)) : handle(task, input);
  }

  function fault({ desk: { id, fields }, verdict }: Task, error: unknown): Response {
    faults.report(id, error);
    const headers = limitFields(verdict, fields);
    if (!(error instanceof Unavailable)) {
      return faultReply(headers);
    }
    const retry = limitFields(verdict, fields, { "Retry-After": `${error.retryAfterSeconds}` });
    return errorReply("unavailable", "The service cannot answer right now; try again soon.", retry);
  }
}

function handle(task: Task, input: OperationInput | Refusal): Awaitable<Response> {
  if ("refused" in input) return refusal(input, task);
  const answer = task.desk.handler(input);
  return answer instanceof Promise ? answer.then((given) => write(task, given)) : write(task, answer);
}

function write(task: Task, answer: AnyAnswer): Response {
  if ("refused" in answer) return refusal(answer, task);
  const { desk, verdict, request, words } = task;
  const { body, headers, lastsIn } = answer;
  if (desk.operation.method !== "GET") return desk.template.dress(headers).reply(body, verdict);
  const etag = answer.etag ?? etagOf(body);
  if (lastsIn && desk.kept?.isWanted(words)) {
    const template = templateOf(desk).dress(headers);
    desk.kept.keep(words, { template, body, etag }, lastsIn);
  }
  return desk.template.dress(headers).replyUnlessKnown(body, verdict, condition(request, etag));
}

function condition(request: Request, etag: string): Condition {
  return { ifNoneMatch: request.headers.get("if-none-match"), etag };
}

/** What the client said besides the operation: with it, everything that decides the answer to a GET. */
function wordsOf({ identifier, query }: Operation, request: Bun.BunRequest<string>): string {
  if (identifier) return request.params[identifier.name] ?? "";
  return query ? queryOf(request.url) : "";
}

function desksOf({ handlers, kept, baseUrl }: Operating): Readonly<Record<OperationId, Desk>> {
  const entries = (Object.entries(OPERATIONS) as [OperationId, Operation][]).map(([id, operation]) => {
    const { deprecated } = operation;
    const fields = deprecated ? removalFields(deprecated, baseUrl) : {};
    const goneAt = deprecated?.sunset.getTime() ?? Infinity;
    const handler = handlers[id] as unknown as AnyHandler;
    const template = templateOf({ operation, fields });
    return [id, { id, operation, handler, kept: kept[id], fields, template, goneAt }];
  });
  return Object.fromEntries(entries) as Record<OperationId, Desk>;
}

function templateOf({ operation, fields }: Pick<Desk, "operation" | "fields">): Template {
  return new Template(operation.success.status, fields);
}

function refusal({ refused, message }: Refusal, { verdict, desk }: Task): Response {
  // What is left of a body that is too large is not read: the connection cannot be used again.
  const closing = refused === "body_too_large" ? { Connection: "close" } : undefined;
  return errorReply(refused, message, limitFields(verdict, desk.fields, closing));
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
