import { existsSync } from "node:fs";
import { toYaml } from "../../../api/yaml.ts";
import { UsageError } from "../../../config/usage-error.ts";
import { readTextFile } from "../../../config/read-file.ts";
import { quotedPath } from "../../../config/quoted.ts";
import { file, switchOption } from "../../../config/value-types.ts";
import { replaceFile } from "../../../runtime/own-files.ts";
import { countOf, grouped, printable } from "../../../text/formatting.ts";
import { type Context, defineCommand, Failure } from "../../command.ts";
import { type CallOperation, locationOf, CALL_OPTIONS } from "../../calls/call.ts";
import { firstItems } from "../../calls/pages.ts";
import { openOperations } from "../../calls/open-operations.ts";
import { json, type Screen } from "../../output.ts";
import { setByWarning } from "../plans.ts";
import { callServer } from "../../calls/remote-server.ts";
import { type Change, type Current, hasAny, planChanges } from "./changes.ts";
import type { Declared } from "./file.ts";

/** The longest file. One of 10,000 keys has about 2 MB. */
const MAX_BYTES = 16 * 2 ** 20;

/** A file that is none of this kind has a problem in each line. */
const MAX_SHOWN = 50;

export const apply = defineCommand({
  name: "apply",
  summary: "Bring plans, ban rules, operators and keys to what a file says",
  description:
    "Reads a file of YAML or JSON, such as petstore export config writes, and changes what differs: each change is one operation with one audit entry. A second time it changes nothing. What the file does not name stays, and so does a field that it does not have; null removes a value. A key is found by its id in the file, which is a name of your choice: the key has it as the label id:NAME. The number of a key is an id too. New keys and operators are printed with their secrets, this once, or written to --secrets-file. A file with problems changes nothing.",
  data: "creates",
  positionals: { FILE: { ...file, expected: "the path of a file, or - for standard input" } },
  options: {
    "dry-run": switchOption("Print what would change, and change nothing"),
    prune: switchOption(
      "Disable the keys and operators that are not in their list of the file; it deletes none",
    ),
    "secrets-file": { type: file, help: "New file for the secrets, a line each, instead of printing them" },
    ...CALL_OPTIONS,
  },
  examples: [
    "petstore export config petstore.yaml",
    "petstore apply petstore.yaml --dry-run",
    "petstore apply petstore.yaml --secrets-file secrets.txt",
    "petstore apply petstore.yaml --prune --server https://admin.example.com",
  ],
  async run(commandLine, context) {
    const { positionals, values } = commandLine;
    const { FILE: path } = positionals;
    const { "dry-run": isDryRun, "secrets-file": secretsFile, prune, server } = values;
    // The parser of YAML is loaded when it is used, because that takes 40 ms.
    const { readDeclared } = await import("./file.ts");
    const { declared, problems, count: found, describe } = readDeclared(await textOf(path, context));
    const fail = (lines: readonly string[], all: number): never => {
      for (const line of lines.slice(0, MAX_SHOWN)) context.warn(printable(line));
      if (all > MAX_SHOWN) context.warn(`and ${all - MAX_SHOWN} more`);
      throw new Failure(
        `${countOf(all, "problem")} in ${path === "-" ? "standard input" : quotedPath(path)}; nothing was changed`,
      );
    };
    if (declared === undefined) return fail(problems, found);
    const token = values["admin-token"];
    const data = isDryRun ? "reads" : "creates";
    await using operations = await openOperations(commandLine, context, { data });
    const { call } = operations;
    const current = await readCurrent(declared, call);
    const self =
      prune && server !== undefined && token !== undefined
        ? (await callServer({ server, token }, "getSession")).operator?.name
        : undefined;
    const now = context.clock.now();
    const plan = planChanges(declared, current, { now, prune, self });
    if (plan.problems.length > 0) return fail(describe(plan.problems), plan.problems.length);
    const makesSecrets = plan.changes.some(({ action }) => action === "create");
    if (makesSecrets && secretsFile !== undefined && existsSync(secretsFile))
      throw new UsageError(`--secrets-file is ${quotedPath(secretsFile)}, which exists; name a new file`);
    const applying = new Applying(context, { isJson: values.json, secretsFile });
    const count = plan.changes.length;
    try {
      if (isDryRun) for (const change of plan.changes) await applying.show(change);
      else for (const change of plan.changes) await applying.make(change, call);
    } catch (error) {
      // Nobody can read the secrets of what was created again.
      if (values.json) await context.print(json({ changes: applying.changes, applied: !isDryRun }));
      const made = applying.changes.length;
      if (made > 0)
        context.warn(
          `made ${grouped(made)} of ${countOf(count, "change")}; apply the file again for the others`,
        );
      throw error;
    }
    const warning = setByWarning(plan.changes.flatMap(({ setBy = [] }) => setBy));
    if (warning !== undefined) context.warn(printable(warning));
    if (values.json) return json({ changes: applying.changes, applied: !isDryRun });
    const where = locationOf(values);
    if (count === 0) return `Nothing differs in ${where}.\n`;
    return isDryRun
      ? `${countOf(count, "change")}, of which none was made: --dry-run.\n`
      : `${countOf(count, "change")} in ${where}.\n`;
  },
});

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
    const { action, kind, name, before, after } = change;
    this.changes.push({
      action,
      kind,
      ...(name !== undefined && { name }),
      before,
      after,
      ...(secret && { secret }),
    });
    if (!this.options.isJson) await this.context.print(diffOf(change, this.context.screen));
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

const diffLines = (sign: string, values: object) =>
  hasAny(values)
    ? toYaml(values)
        .trimEnd()
        .split("\n")
        .map((line) => sign + line)
    : [];

/** A change as a part of a diff. */
function diffOf({ action, kind, name, before, after }: Change, screen: Screen): string {
  const title = [action, kind, name].filter((word) => word !== undefined).join(" ");
  const painted = (format: "red" | "green" | "cyan", texts: readonly string[]) =>
    texts.map((text) => `${screen.paint(format, printable(text))}\n`).join("");
  return (
    painted("cyan", [`@@ ${title} @@`]) +
    painted("red", diffLines("-", before)) +
    painted("green", diffLines("+", after))
  );
}
