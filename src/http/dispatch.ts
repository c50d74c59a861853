import { type Rejection, Unavailable } from "../contract/errors.ts";
import { OPERATIONS, type Operation, type OperationId } from "../contract/operations.ts";
import { DAY_MS, type Decision } from "../domain/rate-limit.ts";
import type { Awaitable } from "../domain/awaitable.ts";
import type { Clock } from "../domain/ports.ts";
import { etagOf } from "../etag.ts";
import { headerLine, type Request, type Response } from "../http1/index.ts";
import type { ApiKeyPrincipal } from "../auth/authenticator.ts";
import { isKnown } from "./conditional-requests.ts";
import type { Deadlines } from "./request-timeout.ts";
import { removalFields } from "./deprecation-headers.ts";
import type { ErrorLog } from "./error-log.ts";
import type { Handlers } from "./handlers.ts";
import type { IdRange } from "./pet-json.ts";
import { type OperationInput, readInput } from "./validation.ts";
import type { CachedResponse, ResponseCache } from "./response-cache.ts";
import {
  emptyResponse,
  errorResponse,
  internalErrorResponse,
  type HeaderFields,
  jsonResponse,
  rateLimitLines,
  headerLinesOf,
  unavailableResponse,
} from "./responses.ts";
import { identifierIn, type Route } from "./router.ts";

export interface Operating {
  readonly handlers: Handlers;
  /** By operation; none where the store cannot tell whether an answer still holds. */
  readonly kept: Partial<Record<OperationId, ResponseCache>>;
  readonly deadlines: Deadlines;
  readonly clock: Clock;
  readonly faults: ErrorLog;
  readonly baseUrl: string;
}

/** Answers a request that was allowed. */
export type Operate = (
  request: Request,
  route: Route | undefined,
  principal: ApiKeyPrincipal,
  decision: Decision,
) => Awaitable<Response>;

/** Everything that serves one operation, put together once. */
interface Desk {
  readonly id: OperationId;
  readonly operation: Operation;
  readonly handler: AnyHandler;
  readonly kept: ResponseCache | undefined;
  /** What every answer of the operation says in its head. */
  readonly lines: string;
  /** When the operation is removed; never, as a rule. */
  readonly goneAt: number;
}

/** One request at its desk. */
interface Task {
  readonly desk: Desk;
  readonly request: Request;
  readonly decision: Decision;
  /** What a kept answer is found by. */
  readonly words: string;
}

type AnyAnswer =
  | {
      readonly body: string;
      readonly headers?: HeaderFields;
      readonly etag?: string;
      readonly lastsIn?: IdRange;
    }
  | Rejection;
/** Any of the handlers, for an input that was read by that same operation's entry in the table. */
type AnyHandler = (input: OperationInput) => Awaitable<AnyAnswer>;

export function createOperate(operating: Operating): Operate {
  const { deadlines, clock, faults } = operating;
  const desks = desksOf(operating);

  return (request, route, principal, decision) => {
    if (route === undefined)
      return errorResponse("not_found", "No resource lives at this path.", rateLimitLines(decision));
    const id = route.operations.get(request.method);
    if (id === undefined) return otherMethod(request.method, route, decision);

    const desk = desks[id];
    if (hasGone(desk, decision)) return removed(decision, desk);
    const words = desk.operation.identifier ? identifierIn(request.path, route) : request.query;
    const known = desk.kept?.find(words);
    if (known) return replyUnlessKnown(request, known, decision);

    const task = { desk, request, decision, words };
    try {
      const input = readInput({ request, operation: desk.operation, words }, principal);
      return input instanceof Promise
        ? input.then((read) => work(task, read)).catch((error: unknown) => fault(task, error))
        : work(task, input);
    } catch (error) {
      return fault(task, error);
    }
  };

  /**
   * The clock takes its time, and is not asked before the end is near: the caller's window ends later than now, by a
   * clock that is less than a day behind this one.
   */
  function hasGone({ goneAt }: Desk, { resetAt }: Decision): boolean {
    return resetAt * 1000 + DAY_MS >= goneAt && clock.now() >= goneAt;
  }

  /** The deadline begins here: until the input had come it was the client's time that passed. */
  function work(task: Task, input: OperationInput | Rejection): Awaitable<Response> {
    if ("code" in input) return rejected(input, task);
    const answer = task.desk.handler(input);
    if (!(answer instanceof Promise)) return write(task, answer);
    const response = answer.then((given) => write(task, given));
    return deadlines.bound(response, (error) => fault(task, error));
  }

  function fault({ desk: { id, lines }, decision }: Task, error: unknown): Response {
    faults.report(id, error);
    const head = lines + rateLimitLines(decision);
    if (!(error instanceof Unavailable)) return internalErrorResponse(head);
    const message = "The service cannot answer right now; try again soon.";
    return unavailableResponse(message, head, error.retryAfterSeconds);
  }
}

function write(task: Task, answer: AnyAnswer): Response {
  if ("code" in answer) return rejected(answer, task);
  const { desk, decision, request, words } = task;
  const { body, headers, lastsIn } = answer;
  const lines = headers ? desk.lines + headerLinesOf(headers) : desk.lines;
  const { method, success } = desk.operation;
  if (method !== "GET") return jsonResponse(success.status, lines + rateLimitLines(decision), body);
  const etag = answer.etag ?? etagOf(body);
  const whole = { lines: lines + headerLine("ETag", etag), body, etag };
  if (lastsIn && desk.kept?.isWanted(words)) desk.kept.keep(words, whole, lastsIn);
  return replyUnlessKnown(request, whole, decision);
}

/** 304 when the client has this already. */
function replyUnlessKnown(
  { headers }: Request,
  { lines, body, etag }: CachedResponse,
  decision: Decision,
): Response {
  const head = lines + rateLimitLines(decision);
  return isKnown(etag, headers.get("if-none-match"))
    ? emptyResponse(304, head)
    : jsonResponse(200, head, body);
}

function desksOf({ handlers, kept, baseUrl }: Operating): Readonly<Record<OperationId, Desk>> {
  const entries = (Object.entries(OPERATIONS) as [OperationId, Operation][]).map(([id, operation]) => {
    const { deprecated } = operation;
    const lines = headerLinesOf(deprecated ? removalFields(deprecated, baseUrl) : {});
    const goneAt = deprecated?.sunset.getTime() ?? Infinity;
    const handler = handlers[id] as unknown as AnyHandler;
    return [id, { id, operation, handler, kept: kept[id], lines, goneAt }];
  });
  return Object.fromEntries(entries) as Record<OperationId, Desk>;
}

function rejected({ code, message }: Rejection, { decision, desk }: Task): Response {
  return errorResponse(code, message, desk.lines + rateLimitLines(decision));
}

function otherMethod(method: string, { methods }: Route, decision: Decision): Response {
  const lines = headerLine("Allow", methods) + rateLimitLines(decision);
  if (method === "OPTIONS") return emptyResponse(204, lines);
  return errorResponse("method_not_allowed", `This path allows ${methods}, not ${method}.`, lines);
}

function removed(decision: Decision, { lines }: Desk): Response {
  return errorResponse(
    "operation_removed",
    "This operation has been removed; Link names its successor.",
    lines + rateLimitLines(decision),
  );
}
