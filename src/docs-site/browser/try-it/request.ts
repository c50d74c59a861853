import type { TryItField, TryItOperation } from "../../try-it-data.ts";

/** A request as it is sent. */
export interface ApiRequest {
  readonly method: TryItOperation["method"];
  readonly url: URL;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly body?: string;
}

export interface RequestInput {
  readonly operation: Pick<TryItOperation, "method" | "path" | "fields">;
  /** What was typed, by the names of the fields. */
  readonly values: Readonly<Record<string, string>>;
  /** Of the API, without a trailing slash. */
  readonly baseUrl: string;
  /** Empty for none. */
  readonly key: string;
}

interface GivenField {
  readonly field: TryItField;
  readonly text: string;
}

/** An empty field is left out. Any other text is sent as it was typed, so that people see what the API responds. */
export function requestOf({ operation, values, baseUrl, key }: RequestInput): ApiRequest {
  const { method, path, fields } = operation;
  const given = (location: TryItField["in"]): GivenField[] =>
    fields.flatMap((field) => {
      const text = values[field.name] ?? "";
      return field.in === location && text !== "" ? [{ field, text }] : [];
    });
  const filledPath = path.replace(/\{(\w+)\}/, (_, name: string) => encodeURIComponent(values[name] ?? ""));
  const query = given("query").map(({ field, text }) => `${field.name}=${queryValue(text)}`);
  const hasBody = fields.some((field) => field.in === "body");
  const headers: [string, string][] = [];
  if (key !== "") headers.push(["Authorization", `Bearer ${key}`]);
  if (hasBody) headers.push(["Content-Type", "application/json"]);
  for (const { field, text } of given("header")) headers.push([field.name, text]);
  return {
    method,
    url: new URL(`${baseUrl}${filledPath}${query.length > 0 ? `?${query.join("&")}` : ""}`),
    headers,
    ...(hasBody && { body: bodyText(given("body")) }),
  };
}

/** The commas between identifiers stay readable. */
function queryValue(text: string): string {
  return encodeURIComponent(text).replaceAll("%2C", ",");
}

function bodyText(fields: readonly GivenField[]): string {
  const members = fields.map(({ field, text }) => `${JSON.stringify(field.name)}: ${jsonValue(field, text)}`);
  return `{${members.join(", ")}}`;
}

const JSON_NUMBER = /^-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/** A number is sent digit for digit: as a JavaScript number, 9007199254740993 would become 9007199254740992. */
function jsonValue({ type }: TryItField, text: string): string {
  return type !== "string" && JSON_NUMBER.test(text) ? text : JSON.stringify(text);
}

/** The request as HTTP/1.1 writes it. The key is masked, because people show this text to each other. */
export function httpText({ method, url, headers, body }: ApiRequest): string {
  const lines = [`${method} ${url.pathname}${url.search} HTTP/1.1`, `Host: ${url.host}`];
  for (const [name, value] of headers)
    lines.push(`${name}: ${name === "Authorization" ? maskedAuthorization(value) : value}`);
  return [...lines, ...(body === undefined ? [] : ["", body])].join("\n");
}

const KEY_PREFIX = /^Bearer pet_(?:live|test)_/;

function maskedAuthorization(value: string): string {
  return `${KEY_PREFIX.exec(value)?.[0] ?? "Bearer "}••••••••`;
}

/** The same request for a shell. The key is a variable, because a shell keeps a history of its commands. */
export function curlText({ method, url, headers, body }: ApiRequest): string {
  const options = headers.map(([name, value]) =>
    name === "Authorization" ? '-H "Authorization: Bearer $KEY"' : `-H ${shellQuoted(`${name}: ${value}`)}`,
  );
  if (body !== undefined) options.push(`--data-raw ${shellQuoted(body)}`);
  // curl takes the method from the data.
  const isImplied = method === (body === undefined ? "GET" : "POST");
  return [`curl -i ${isImplied ? "" : `-X ${method} `}${shellQuoted(url.href)}`, ...options].join(" \\\n  ");
}

/** One word to a shell, whatever the text contains. */
function shellQuoted(text: string): string {
  return /^[\w./:-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`;
}
