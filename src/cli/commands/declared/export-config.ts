import { quotedPath } from "../../../config/quoted.ts";
import { file, optional } from "../../../config/value-types.ts";
import type { Key, OperatorView } from "../../../operator/operations.ts";
import { replaceFile } from "../../../runtime/own-files.ts";
import { countOf } from "../../../text/formatting.ts";
import { defineCommand } from "../../command.ts";
import { CALL_OPTIONS } from "../../calls/call.ts";
import { openOperations } from "../../calls/open-operations.ts";
import { json } from "../../output.ts";
import { readCurrent } from "./apply.ts";
import type { Current } from "./changes.ts";
import { keyNames, labelOfKey } from "./key-labels.ts";

export const exportConfig = defineCommand({
  name: "export config",
  summary: "Write plans, ban rules, operators and keys as a file for petstore apply",
  description:
    "Writes the limits of the plans, the ban rules, the operators and the keys, as YAML or with --json as JSON. petstore apply of that file changes nothing. Revoked keys and operators, operators who sign in with a provider, and secrets are left out. Without FILE, or with -, it writes to standard output.",
  data: "reads",
  positionals: { FILE: optional({ ...file, expected: "the path of a file, or - for standard output" }) },
  options: CALL_OPTIONS,
  examples: [
    "petstore export config petstore.yaml",
    "petstore export config --server https://admin.example.com > petstore.yaml",
  ],
  async run(commandLine, context) {
    const { positionals, values } = commandLine;
    const { FILE: path } = positionals;
    await using operations = await openOperations(commandLine, context);
    const config = configOf(await readCurrent({ operators: [], keys: [] }, operations.call));
    const { textOfValues } = await import("./file.ts");
    const text = values.json ? json(config) : textOfValues(config);
    if (path === undefined || path === "-") return text;
    replaceFile(path, text);
    const { keys, operators } = config;
    return `Exported ${countOf(keys.length, "key")} and ${countOf(operators.length, "operator")} to ${quotedPath(path)}.\n`;
  },
});

/** The values as a file has them: without defaults. */
function configOf({ plans, banRules, operators, keys }: Current) {
  return {
    plans: Object.fromEntries(plans.map(({ plan, perMinute, perDay }) => [plan, { perMinute, perDay }])),
    banRules,
    operators: operators.flatMap(operatorEntry),
    keys: keys.flatMap(keyEntry),
  };
}

function operatorEntry({ name, role, expiresAt, state, subject }: OperatorView) {
  if (state === "revoked" || subject !== undefined) return [];
  return [{ name, role, ...(expiresAt !== null && { expiresAt }) }];
}

function keyEntry({ id, name, plan, limits, owner, notes, labels, access, expiresAt, state }: Key) {
  if (state === "revoked") return [];
  const [named] = keyNames(labels);
  const others = labels.filter((label) => named === undefined || label !== labelOfKey(named));
  return [
    {
      id: named ?? id,
      name,
      plan,
      ...(plan === "enterprise" && { limits }),
      ...(owner !== null && { owner }),
      ...(notes !== null && { notes }),
      ...(others.length > 0 && { labels: others }),
      ...(access !== "write" && { access }),
      ...(expiresAt !== null && { expiresAt }),
      ...(state === "disabled" && { disabled: true }),
    },
  ];
}
