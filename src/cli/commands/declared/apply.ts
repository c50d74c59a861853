import { existsSync } from "node:fs";
import { UsageError } from "../../../config/usage-error.ts";
import { readTextFile } from "../../../config/read-file.ts";
import { quotedPath } from "../../../config/quoted.ts";
import { file, switchOption } from "../../../config/value-types.ts";
import { replaceFile } from "../../../runtime/own-files.ts";
import { countOf, grouped, printable } from "../../../text/formatting.ts";
import type { Options } from "../../../config/parse-options.ts";
import { type CommandLine, type Context, defineCommand, Failure, type FinalText } from "../../command.ts";
import { errorMessage } from "../../error-message.ts";
import { type CallOperation, locationOf, CALL_OPTIONS } from "../../calls/call.ts";
import { firstItems } from "../../calls/pages.ts";
import { openOperations } from "../../calls/open-operations.ts";
import { json, type Screen } from "../../output.ts";
import { requestsOfLastDay } from "../usage.ts";
import { callServer } from "../../calls/remote-server.ts";
import { type Change, type Current, hasAny, planChanges } from "./changes.ts";
import type { Declared } from "./file.ts";

/** The longest file. One of 10,000 keys has about 2 MB. */
const MAX_BYTES = 16 * 2 ** 20;

/** A file that is none of this kind has a problem in each line. */
const MAX_SHOWN = 50;

const FILE_POSITIONAL = { FILE: { ...file, expected: "the path of a file, or - for standard input" } };

const OPTIONS = {
  "dry-run": switchOption("Print what would change, and change nothing"),
  check: switchOption(
    "As --dry-run, and the exit status is 1 if something differs, and 2 if the command fails",
  ),
  prune: switchOption(
    "Disable the keys and operators that are not in their list of the file; it deletes none. Prints the requests of the last day of each key",
  ),
  "secrets-file": { type: file, help: "New file for the secrets, a line each, instead of printing them" },
  ...CALL_OPTIONS,
} as const satisfies Options;

/** The exit status of --check if the command fails, as of diff. It differs from that of a difference. */
const CHECK_FAILED = 2;

/** What --check ends with if something differs. */
class Differing extends Failure {}

export const apply = defineCommand({
  name: "apply",
  summary: "Bring plans, ban rules, operators and keys to what a file says",
  description:
    "Reads a file of YAML or JSON, such as petstore export config writes, and changes what differs: each change is one operation with one audit entry. A second time it changes nothing. What the file does not name stays, and so does a field that it does not have; null removes a value. A key is found by its id in the file, which is a name of your choice: the key has it as the label id:NAME. The number of a key is an id too. New keys and operators are printed with their secrets, this once, or written to --secrets-file. A file with problems changes nothing. An entry that names what is revoked, or a key that has expired, is printed and left out; if the file has no other, the command fails.",
  data: "changes",
  positionals: FILE_POSITIONAL,
  options: OPTIONS,
  examples: [
    "petstore export config petstore.yaml",
    "petstore apply petstore.yaml --dry-run",
    "petstore apply petstore.yaml --check",
    "petstore apply petstore.yaml --secrets-file secrets.txt",
    "petstore apply petstore.yaml --prune --server https://admin.example.com",
  ],
  async run(commandLine, context) {
    return await applyFile(commandLine, context).catch((error: unknown) => {
      const isAnswer = error instanceof Differing || error instanceof UsageError;
      if (!commandLine.values.check || isAnswer) throw error;
      throw new Failure(error instanceof Failure ? error.message : errorMessage(error), CHECK_FAILED);
    });
  },
});

async function applyFile(
  commandLine: CommandLine<typeof FILE_POSITIONAL, typeof OPTIONS>,
  context: Context,
): Promise<FinalText> {
  const { positionals, values } = commandLine;
  const { FILE: path } = positionals;
  const { check: isCheck, "secrets-file": secretsFile, prune, server } = values;
  const isDryRun = values["dry-run"] || isCheck;
  // The parser of YAML is loaded when it is used, because that takes 40 ms.
  const { readDeclared } = await import("./file.ts");
  const { declared, problems, count: found, describe } = readDeclared(await textOf(path, context));
  const warnOf = (lines: readonly string[], all: number) => {
    for (const line of lines.slice(0, MAX_SHOWN)) context.warn(printable(line));
    if (all > MAX_SHOWN) context.warn(`and ${all - MAX_SHOWN} more`);
  };
  const fail = (lines: readonly string[], all: number): never => {
    warnOf(lines, all);
    throw new Failure(
      `${countOf(all, "problem")} in ${path === "-" ? "standard input" : quotedPath(path)}; nothing was changed`,
    );
  };
  if (declared === undefined) return fail(problems, found);
  const token = values["admin-token"];
  const data = isDryRun ? "reads" : "changes";
  await using operations = await openOperations(commandLine, context, { data });
  const { call } = operations;
  const now = context.clock.now();
  const current = await readCurrent(declared, call);
  const requests = prune && declared.keys ? await requestsOfLastDay(call, now) : undefined;
  const self =
    prune && server !== undefined && token !== undefined
      ? (await callServer({ server, token }, "getSession")).operator?.name
      : undefined;
  const plan = planChanges(declared, { ...current, requests }, { now, prune, self });
  if (plan.problems.length > 0) return fail(describe(plan.problems), plan.problems.length);
  const leftOut = plan.leftOut.length;
  if (leftOut > 0 && leftOut === entriesOf(declared)) return fail(describe(plan.leftOut), leftOut);
  const makesSecrets = plan.changes.some(({ action }) => action === "create");
  if (makesSecrets && secretsFile !== undefined && existsSync(secretsFile))
    throw new UsageError(`--secrets-file is ${quotedPath(secretsFile)}, which exists; name a new file`);
  const applying = new Applying(context, { isJson: values.json, secretsFile });
  const count = plan.changes.length;
  const leftOutLines = describe(plan.leftOut);
  warnOf(
    leftOutLines.map((line) => `left out: ${line}`),
    leftOut,
  );
  const result = () =>
    json({ changes: applying.changes, applied: !isDryRun, ...(leftOut > 0 && { leftOut: leftOutLines }) });
  try {
    if (isDryRun) for (const change of plan.changes) await applying.show(change);
    else for (const change of plan.changes) await applying.make(change, call);
  } catch (error) {
    // Nobody can read the secrets of what was created again.
    if (values.json) await context.print(result());
    const made = applying.changes.length;
    if (made > 0)
      context.warn(
        `made ${grouped(made)} of ${countOf(count, "change")}; apply the file again for the others`,
      );
    throw error;
  }
  const where = locationOf(values);
  const differences = count + leftOut;
  if (isCheck && differences > 0) {
    if (values.json) await context.print(result());
    throw new Differing(
      `${countOf(differences, "difference")} between ${path === "-" ? "standard input" : quotedPath(path)} and ${where}`,
    );
  }
  if (values.json) return result();
  const others = leftOut > 0 ? `; ${leftOut} left out` : "";
  if (count === 0) return `Nothing ${leftOut > 0 ? "else " : ""}differs in ${where}${others}.\n`;
  return isDryRun
    ? `${countOf(count, "change")}, of which none was made: --dry-run.\n`
    : `${countOf(count, "change")} in ${where}${others}.\n`;
}

/** The number of plans, operators and keys that a file names, and of ban rules. */
function entriesOf({ plans, banRules, operators = [], keys = [] }: Declared): number {
  return Object.keys(plans).length + Object.keys(banRules).length + operators.length + keys.length;
}

async function textOf(path: string, { readInput }: Context): Promise<string> {
  const text = path === "-" ? await inputText(readInput()) : readTextFile("FILE", path);
  if (text.length > MAX_BYTES)
    throw new UsageError(`FILE is ${quotedPath(path)}; it has more than ${MAX_BYTES} characters`);
  return text;
}

async function inputText(input: AsyncIterable<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  for await (const part of input) {
    text += decoder.decode(part, { stream: true });
    if (text.length > MAX_BYTES) break;
  }
  return text + decoder.decode();
}

/** Reads what the file is compared with. */
export async function readCurrent(
  { operators, keys }: Pick<Declared, "operators" | "keys">,
  call: CallOperation,
): Promise<Current> {
  const list = async (query: { limit: number; cursor: string | undefined }) => call("listKeys", { query });
  return {
    plans: (await call("listPlans")).items,
    banRules: await call("getBanRules"),
    operators: operators === undefined ? [] : (await call("listOperators")).items,
    keys: keys === undefined ? [] : await firstItems(Infinity, list),
  };
}

interface ApplyingOptions {
  readonly isJson: boolean;
  readonly secretsFile: string | undefined;
}

/** Shows and makes changes, and hands their secrets out at once: nobody can read them again. */
class Applying {
  readonly changes: object[] = [];
  #secretLines = "";

  constructor(
    private readonly context: Context,
    private readonly options: ApplyingOptions,
  ) {}

  async show(change: Change, secret?: string): Promise<void> {
    const { action, kind, name, before, after, use } = change;
    this.changes.push({
      action,
      kind,
      ...(name !== undefined && { name }),
      before,
      after,
      ...use,
      ...(secret && { secret }),
    });
    if (!this.options.isJson) await this.context.print(await diffOf(change, this.context.screen));
  }

  async make(change: Change, call: CallOperation): Promise<void> {
    const secret = await change.run(call);
    const { kind, name } = change;
    const { secretsFile } = this.options;
    if (secret === undefined || secretsFile === undefined) {
      await this.show(change, secret);
      if (secret !== undefined && !this.options.isJson)
        await this.context.print(`${secret}   # of ${kind} ${name}, shown only this once\n`);
      return;
    }
    this.#secretLines += `${kind} ${name} ${secret}\n`;
    try {
      replaceFile(secretsFile, this.#secretLines);
    } catch (error) {
      await this.context.print(this.#secretLines);
      throw error;
    }
    await this.show(change);
  }
}

function useText(use: NonNullable<Change["use"]>, screen: Screen): string {
  if ("requestsOfLastDay" in use) return `${countOf(use.requestsOfLastDay, "request")} in the last 24 hours`;
  return `last there: ${use.lastUsedAt === null ? "never" : screen.shortTime(use.lastUsedAt)}`;
}

/** A change as a part of a diff. */
async function diffOf({ action, kind, name, before, after, use }: Change, screen: Screen): Promise<string> {
  const { textOfValues } = await import("./file.ts");
  const lines = (sign: string, values: object) =>
    hasAny(values)
      ? textOfValues(values)
          .trimEnd()
          .split("\n")
          .map((line) => sign + line)
      : [];
  const title = [action, kind, name].filter((word) => word !== undefined).join(" ");
  const painted = (format: "red" | "green" | "cyan", texts: readonly string[]) =>
    texts.map((text) => `${screen.paint(format, printable(text))}\n`).join("");
  return (
    painted("cyan", [`@@ ${title} @@`]) +
    painted("red", lines("-", before)) +
    painted("green", lines("+", after)) +
    painted("cyan", use ? [`# ${useText(use, screen)}`] : [])
  );
}
