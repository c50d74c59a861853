import { expect, spyOn, test } from "bun:test";
import { join } from "node:path";
import { toJson } from "../../src/api/json.ts";
import { Invalid, type JsonSchema, type Schema } from "../../src/api/schema.ts";
import { COMMANDS } from "../../src/cli/command-table.ts";
import { ADMIN_API } from "../../src/operator/api.ts";
import type { AdminOperation } from "../../src/operator/operations.ts";
import { scheduler } from "../../src/runtime/scheduler.ts";
import { cleanUpAfterAll, cliDirectory, failure, InProcessCli } from "./cli.ts";

cleanUpAfterAll();

/** Clears the screen, sets the title, moves the cursor up (also in C1), turns the text around, and is not seen. */
const OBEYED = "\u001b[2J\u001b]0;title\u0007\u001b[31mred\u001b[0m\u009b1A\u007f";
const HIDDEN = "x\u202egnp.exe\u2066\u200b\ufeff\u{e0041}";

/** What no terminal may get, besides line breaks and the colors that a command paints words with. */
const UNPRINTABLE = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;
// eslint-disable-next-line no-control-regex
const withoutOwn = (text: string) => text.replace(/\n|\u001b\[(?:1|22|32|33|90|39)m/g, "");

/** A value that a schema accepts, as hostile as it can be. */
function hostile({ json, read }: Pick<Schema<unknown>, "json"> & Partial<Schema<unknown>>): unknown {
  const { type, format, properties, items, anyOf, minimum, pattern } = json as {
    [keyword: string]: unknown;
    properties?: Record<string, JsonSchema>;
    items?: JsonSchema;
    anyOf?: JsonSchema[];
  };
  const [first] = (json["enum"] ?? []) as readonly unknown[];
  if (first !== undefined || "const" in json) return first ?? json["const"];
  if (anyOf) return hostile({ json: anyOf.find((each) => each["type"] !== "null") ?? {} });
  if (properties)
    return Object.fromEntries(
      Object.entries(properties).map(([name, each]) => [name, hostile({ json: each })]),
    );
  if (type === "object") return { [OBEYED]: OBEYED + HIDDEN, labels: [OBEYED, HIDDEN] };
  if (type === "array") return [hostile({ json: items ?? {} })];
  if (type === "boolean") return true;
  if (type === "integer" || type === "number") return Math.max(1, Number(minimum ?? 1));
  if (format === "date-time") return "2026-11-15T12:00:00Z";
  if (format === "uri") return "https://example.com";
  const candidates = [OBEYED + HIDDEN, HIDDEN, "ann", "127.0.0.1", "1.0.0"];
  const fits = (text: string) => pattern === undefined || new RegExp(String(pattern), "u").test(text);
  return candidates.find((text) => fits(text) && !(read?.(text) instanceof Invalid)) ?? "";
}

/** A server that responds to everybody with what it likes. After as many responses as given, it rejects all. */
function startServer(responses: number) {
  let left = responses;
  const rejected = { code: "invalid_state", message: `${OBEYED}${HIDDEN}\u2028 no`, status: 409 };
  const server = Bun.serve({
    port: 0,
    fetch({ method, url }) {
      const { route } = ADMIN_API.find(new URL(url).pathname) ?? {};
      const id = route?.operations.get(method);
      if (left-- <= 0 || id === undefined) return new Response(JSON.stringify(rejected), { status: 409 });
      const { success }: AdminOperation = ADMIN_API.operations[id];
      if (!success.body) return new Response(null, { status: success.status });
      const value = { ...(hostile(success.body) as object), signedIn: true };
      const body = "nextCursor" in value ? { ...value, nextCursor: null } : value;
      const read = success.body.read(body);
      if (read instanceof Invalid) throw new Error(`${id}: ${JSON.stringify(read.problems)}`);
      return new Response(toJson(body), { status: success.status });
    },
  });
  return { origin: server.url.origin, [Symbol.dispose]: () => void server.stop(true) };
}

const LINES = COMMANDS.filter(({ options, name }) => "server" in options || name === "login").map(
  ({ name, examples: [example = ""] }) =>
    [
      name,
      example.replace(/ (?:#|[<>]).*$|(?<= (?:update|rotate|revoke)) ann\b/, (end) =>
        end === " ann" ? " 1" : "",
      ),
    ] as const,
);

/** The words of a command line after the name of the program. A file is a new one, and `login` has this server. */
function wordsOf(name: string, line: string, server: string): string[] {
  const [, ...words] = (line.match(/'[^']*'|\S+/g) ?? []).map((word) => word.replaceAll("'", ""));
  return words.map((word) => {
    if (word.endsWith(".yaml")) return join(cliDirectory(), word);
    return name === "login" && word.startsWith("https:") ? server : word;
  });
}

for (const isTerminal of [true, false]) {
  for (const NO_COLOR of ["", "1"]) {
    const where = `${isTerminal ? "a terminal" : "a pipe"}${NO_COLOR && " without colors"}`;
    test.each(LINES)(
      `%s prints what a hostile server sends to ${where} so that it is seen`,
      async (name, line) => {
        const cli = new InProcessCli();
        cli.isTerminal = isTerminal;
        cli.secret = name === "keys find" ? "pet_live_x" : "x".repeat(20);
        for (const responses of [Infinity, 1, 0]) {
          using hostileServer = startServer(responses);
          const { origin: server } = hostileServer;
          const argv = wordsOf(name, line, server);
          const variables = {
            NO_COLOR,
            XDG_CONFIG_HOME: cliDirectory(),
            ...(name !== "login" && { PETSTORE_SERVER: server, PETSTORE_TOKEN: "x".repeat(20) }),
          };
          const { out, err, code } = await cli.run(argv, variables);
          for (const text of [out, err, ...cli.questions]) {
            expect(withoutOwn(text)).not.toMatch(UNPRINTABLE);
            if (NO_COLOR) expect(text).not.toInclude("\u001b");
          }
          if (responses === Infinity) expect({ code, err }).toEqual({ code: 0, err: "" });
          if (responses === 0) expect(err).toInclude("\\u{202e}");
        }
      },
    );
  }
}

test.each(LINES)("%s waits a minute at most for a server that limits the rate", async (name, line) => {
  const message = "Too many requests of this operator at once.";
  const body = JSON.stringify({ code: "too_many_requests", message, status: 429 });
  const cli = new InProcessCli();
  cli.secret = name === "keys find" ? "pet_live_x" : "x".repeat(20);
  for (const [retryAfter, waits] of [
    ["999999999", []],
    ["25", [25_000, 25_000]],
  ] as const) {
    const fetch = () => new Response(body, { status: 429, headers: { "Retry-After": retryAfter } });
    using server = Bun.serve({ port: 0, fetch });
    const { origin } = server.url;
    let now = 0;
    using _ = spyOn(scheduler, "now").mockImplementation(() => now);
    using sleep = spyOn(scheduler, "sleep").mockImplementation(async (ms) => void (now += ms));
    const variables = {
      XDG_CONFIG_HOME: cliDirectory(),
      ...(name !== "login" && { PETSTORE_SERVER: origin, PETSTORE_TOKEN: "x".repeat(20) }),
    };
    const { code, err } = await cli.run(wordsOf(name, line, origin), variables);
    expect({ code, err }).toEqual({ code: 1, err: expect.stringContaining(message) });
    expect(sleep.mock.calls.slice(0, waits.length + 1)).toEqual(waits.map((ms) => [ms]));
  }
});

test.each(["requests --follow", "requests --follow --json"])("%s prints the same way", async (line) => {
  const cli = new InProcessCli();
  cli.isTerminal = true;
  using server = startServer(1);
  const variables = { PETSTORE_SERVER: server.origin, PETSTORE_TOKEN: "x".repeat(20) };
  const { out, err } = await cli.run(line, variables);
  expect(out.replaceAll("\n", "")).not.toMatch(UNPRINTABLE);
  expect(out).toMatch(line.endsWith("json") ? /^\{.*\\u202e.*\}\n/ : /^2026.*\\u\{202e\}/);
  expect(err).toInclude("\\u{202e}");
});

test.each([
  ['{"signedIn":true,"version":"0.9"}', ", a server of version 0.9"],
  ["no", ""],
])(
  "an unexpected response is said to be one, with the version that the session has: %s",
  async (session, by) => {
    const fetch = ({ url }: Request) => new Response(url.endsWith("/session") ? session : '{"items":7}');
    using server = Bun.serve({ port: 0, fetch });
    const { origin } = server.url;
    const variables = { PETSTORE_SERVER: origin, PETSTORE_TOKEN: "x".repeat(20) };
    const result = await new InProcessCli().run("keys list", variables);
    expect(result).toEqual(failure(`an unexpected response from ${origin}${by}`));
  },
);
