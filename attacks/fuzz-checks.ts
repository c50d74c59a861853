import type { FuzzRequest } from "./fuzz-requests.ts";

export interface ReceivedResponse {
  readonly status: number;
  readonly closes: boolean;
}

/** Reads pipelined responses. Undefined if the bytes are not HTTP responses in full. */
export function readResponses(
  received: string,
  methods: readonly string[],
): readonly ReceivedResponse[] | undefined {
  const responses: ReceivedResponse[] = [];
  let at = 0;
  while (at < received.length) {
    const end = received.indexOf("\r\n\r\n", at);
    if (end === -1) return undefined;
    const head = received.slice(at, end + 2);
    const status = Number(/^HTTP\/1\.1 (\d{3}) /.exec(head)?.[1]);
    if (Number.isNaN(status)) return undefined;
    at = end + 4;
    // 100 Continue is no response of its own.
    if (status === 100) continue;
    const isEmpty = methods[responses.length] === "HEAD" || status === 204 || status === 304;
    at += isEmpty ? 0 : Number(/^content-length: (\d+)\r$/im.exec(head)?.[1] ?? 0);
    if (at > received.length) return undefined;
    responses.push({ status, closes: /^connection: close\r$/im.test(head) });
  }
  return responses;
}

/** `/` leads to `/docs`. */
const REDIRECT = 302;

/** The statuses of the document, that of `/`, and those of malformed requests in docs/errors.md. */
export function declaredStatuses(openApi: unknown, errorsPage: string): ReadonlySet<number> {
  const statuses = new Set([REDIRECT]);
  const collect = (value: unknown) => {
    if (typeof value !== "object" || value === null) return;
    for (const [name, member] of Object.entries(value)) {
      // 5xx are declared, since they can happen; bad requests must not cause them.
      if (/^[1-4]\d\d$/.test(name)) statuses.add(Number(name));
      collect(member);
    }
  };
  collect(openApi);
  const [, malformed = ""] =
    /<!-- malformed-requests -->([\s\S]*)<!-- \/malformed-requests -->/.exec(errorsPage) ?? [];
  for (const [, status] of malformed.matchAll(/^\| (\d{3}) /gm)) statuses.add(Number(status));
  return statuses;
}

/** What is wrong with the responses to the requests that one connection sent; undefined if nothing is. */
export function problemOf(
  requests: readonly FuzzRequest[],
  received: string,
  declared: ReadonlySet<number>,
): string | undefined {
  const responses = readResponses(
    received,
    requests.map(({ method }) => method),
  );
  if (responses === undefined) return `not a response: ${escapeBytes(received.slice(-300))}`;
  const undeclared = responses.find(({ status }) => !declared.has(status));
  if (undeclared) return `status ${undeclared.status}`;
  const expected = requests.filter(({ isFramed }) => isFramed).length;
  const isEndedByServer = responses.at(-1)?.closes === true;
  if (responses.length < expected && !isEndedByServer)
    return `${responses.length} responses to ${expected} requests`;
  return undefined;
}

/** Printable ASCII as it is, other bytes as \xNN. */
export function escapeBytes(text: string): string {
  return text.replace(/[^\x20-\x7e]|\\/g, (char) => `\\x${char.charCodeAt(0).toString(16).padStart(2, "0")}`);
}
