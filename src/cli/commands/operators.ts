import { parseIdentifier } from "../../api/json.ts";
import { EXPIRES_SOON_MS } from "../../domain/api-keys.ts";
import { NO_TOKEN, ROLE_MEANINGS, ROLES } from "../../domain/operators.ts";
import type { OperatorView, OperatorWithToken } from "../../operator/operations.ts";
import { printable } from "../../text/formatting.ts";
import { listCommand } from "../list-command.ts";
import { confirmed, operationCommand, YES_OPTION } from "../operation-command.ts";
import { type CallCommandLine, type CallOperation, doesNotExist, locationOf } from "../calls/call.ts";
import { expiryFlag, overlapFlag } from "../operation-flags.ts";
import { type Screen, SHOWN_ONCE, type TableColumn } from "../output.ts";

const COLUMNS: readonly TableColumn<OperatorView>[] = [
  ["ID", ({ id }) => String(id)],
  ["NAME", ({ name }) => name],
  ["ROLE", ({ role }) => role],
  ["STATE", stateCell],
  ["TOKEN", ({ hint }) => hint],
  [
    "TOKEN CREATED",
    ({ hint, tokenCreatedAt }, screen) => screen.shortTime(hint === NO_TOKEN ? null : tokenCreatedAt),
  ],
  ["EARLIER TOKENS END", ({ overlapEndsAt }, screen) => screen.shortTime(overlapEndsAt)],
  ["EXPIRES", ({ expiresAt: time }, screen) => screen.shortTime(time)],
  ["LAST USED", ({ lastUsedAt }, screen) => screen.shortTime(lastUsedAt)],
  ["CREATED", ({ createdAt }, screen) => screen.shortTime(createdAt)],
];

/** The state, or that the token expires within a week. */
function stateCell({ state, expiresAt: time }: OperatorView, screen: Screen) {
  if (state !== "active") return screen.coloredCell(state === "expired" ? "red" : "gray", state);
  return time !== null && screen.msUntil(time) < EXPIRES_SOON_MS
    ? screen.coloredCell("yellow", `expires ${screen.at(time)}`)
    : screen.coloredCell("green", state);
}

const expiresAt = expiryFlag("When the token expires, or how long from now");

const ROLE_TEXT = ROLES.map((role) => `${role}: ${ROLE_MEANINGS[role]}`).join("; ");

/** The operator with this identifier, or with this name: one who is not revoked, or else the last of that name. */
async function operatorOf(
  call: CallOperation,
  idOrName: unknown,
  { values }: { readonly values: CallCommandLine["values"] },
): Promise<OperatorView> {
  // A name is never an identifier, and there may be more operators than a list has.
  const name = String(idOrName);
  const query = parseIdentifier(name) === undefined ? { name } : {};
  const { items } = await call("listOperators", { query });
  const found = items.filter(({ id, name }) => name === idOrName || String(id) === String(idOrName));
  const operator = found.find(({ state }) => state === "active") ?? found.at(-1);
  if (operator) return operator;
  const message = `Operator ${printable(String(idOrName))} does not exist.`;
  throw doesNotExist(message, "operators list", values);
}

function tokenText({ token, operator: { role } }: OperatorWithToken): string {
  return `
  ${token}

${SHOWN_ONCE} Whoever has it is this operator, so treat it like a
password. ${role === "metrics" ? METRICS_USE : CONSOLE_USE}
`;
}

const CONSOLE_USE =
  "To sign in to the console, paste it there, or open the URL that petstore admin-url prints.";
const METRICS_USE = `It reads /metrics on the listener for operators, and cannot sign in: send it as
Authorization: Bearer TOKEN, or name a file that has it in credentials_file of Prometheus.`;

export const OPERATOR_COMMANDS = [
  operationCommand({
    name: "operators create",
    operation: "createOperator",
    description: `Creates an operator, a person or a program, and prints their token. The audit trail names them. With the name of a revoked operator it lets that person in again. Running servers accept the token at once. The role says what the operator may do. ${ROLE_TEXT}.`,
    fields: {
      name: {},
      role: { option: { help: "What the operator may do" } },
      expiresAt: { ...expiresAt, option: { ...expiresAt.option, defaultText: "never" } },
    },
    examples: [
      "petstore operators create --name ann --role admin",
      "petstore operators create --name contractor --role support --expires 90d",
      "petstore operators create --name prometheus --role metrics",
    ],
    text(created, { values, context: { screen } }) {
      const { id, name, role, expiresAt: time } = created.operator;
      const expiration = time === null ? "" : `; the token expires ${screen.at(time)}`;
      return `Created operator ${id} ${name} with the role ${role} in ${locationOf(values)}${expiration}:\n${tokenText(created)}`;
    },
  }),
  listCommand({
    name: "operators list",
    operation: "listOperators",
    examples: [
      "petstore operators list",
      "petstore operators list --server https://admin.example.com --json",
    ],
    noun: "operators",
    columns: COLUMNS,
    ifNone: " The first start of a server creates one.",
  }),
  operationCommand({
    name: "operators update",
    operation: "updateOperator",
    fields: { role: { option: { help: "What the operator may do" } }, expiresAt },
    examples: [
      "petstore operators update ann --role support",
      "petstore operators update ann --expires 90d",
      "petstore operators update ann --clear expires",
    ],
    request: async (call, { id, body }, execution) =>
      call("updateOperator", { id: (await operatorOf(call, id, execution)).id, body: { ...body } }),
    text({ id, name, role, expiresAt: time }, { context: { screen } }) {
      const expiration = time === null ? "the token does not expire" : `the token expires ${screen.at(time)}`;
      return `Operator ${id} ${name} is updated: role ${role}, ${expiration}.\n`;
    },
  }),
  operationCommand({
    name: "operators rotate",
    operation: "rotateOperator",
    fields: { overlapSeconds: overlapFlag("Time for which the earlier tokens stay valid", "0") },
    examples: [
      "petstore operators rotate ann",
      "petstore operators rotate prometheus --overlap 10m   # no scrape fails meanwhile",
    ],
    // A program with the role metrics may not list operators, and may rotate its own token.
    async request(call, { id: given, body }, execution) {
      const id = parseIdentifier(String(given)) ?? (await operatorOf(call, given, execution)).id;
      return call("rotateOperator", { id, body: { ...body } });
    },
    text(rotated, { context: { screen } }) {
      const { id, name, overlapEndsAt } = rotated.operator;
      const earlier =
        overlapEndsAt === null
          ? "The earlier one stops working within a second"
          : `The earlier one stays valid ${screen.until(overlapEndsAt)}`;
      return `Operator ${id} ${name} has a new token. ${earlier}.\n${tokenText(rotated)}`;
    },
  }),
  operationCommand({
    name: "operators revoke",
    operation: "revokeOperator",
    examples: ["petstore operators revoke ann", "petstore operators revoke 3 --reason 'left the team' --yes"],
    options: YES_OPTION,
    async request(call, { id: given, body }, execution) {
      const { id, name, revokedAt: revokedBefore } = await operatorOf(call, given, execution);
      await confirmed(`Revoke operator ${id} ${name} permanently?`, execution);
      return { operator: await call("revokeOperator", { id, body: { ...body } }), revokedBefore };
    },
    json: ({ operator }) => operator,
    text: ({ operator: { id, name }, revokedBefore }, { context: { screen } }) =>
      revokedBefore === null
        ? `Operator ${id} ${name} is revoked.\n`
        : `Operator ${id} ${name} was already revoked ${screen.at(revokedBefore)}.\n`,
  }),
];
