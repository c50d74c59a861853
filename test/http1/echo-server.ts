import {
  headerLine,
  HttpServer,
  type Request,
  type RequestHandler,
  type Response,
} from "../../src/http1/index.ts";
import { parseResponses } from "../../trials/harness/http-connection.ts";
import { type Outcome, type ProtocolErrorStatus, readingOf } from "./cases/case.ts";

/** The server discards as much of a body that no handler reads. */
const MAX_BODY_BYTES = 131_072;

function responseTo(request: Request, bytes: Uint8Array | undefined): Response {
  if (bytes === undefined) return { status: 413, headerLines: "", body: "" };
  const { method, path, query } = request;
  const reading = readingOf({ method, path, query, body: Buffer.from(bytes).toString("latin1") });
  return { status: 200, headerLines: headerLine("Reading", encodeURIComponent(reading)), body: "" };
}

/** Says in the `Reading` header of each response what request it responds to. */
export const echoHandler: RequestHandler = {
  handle(request) {
    const body = request.body(MAX_BODY_BYTES);
    return body instanceof Promise
      ? body.then((bytes) => responseTo(request, bytes))
      : responseTo(request, body);
  },
  handleError: () => ({ status: 500, headerLines: "", body: "" }),
  protocolError: (status: ProtocolErrorStatus) => ({ status, headerLines: "", body: "" }),
};

/** What the responses of the echo handler tell of the requests: how it saw each one, or that it did not. */
export function outcomesOf(text: string) {
  const { responses, rest } = parseResponses(text);
  const outcomes = responses.map(({ status, headers }): Outcome =>
    status === 200 ? decodeURIComponent(headers["reading"] ?? "") : (status as 400),
  );
  return { outcomes, rest, saysClose: responses.at(-1)?.headers["connection"] === "close" };
}

export function startEchoServer(handler: RequestHandler = echoHandler): HttpServer {
  const onError = (error: unknown) => console.error(error);
  return new HttpServer({ host: "127.0.0.1", port: 0, createHandler: () => handler, onError });
}
