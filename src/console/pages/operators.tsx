import { type Role, ROLE_MEANINGS, ROLES } from "../../domain/operators.ts";
import type { BodyOf } from "../../operator/operations.ts";
import { call, may, type OperatorView, type OperatorWithToken } from "../admin-api.ts";
import { ActionButton, ActionDialog, DialogButton } from "../components/dialogs.tsx";
import { Choices, TextField, useDraft } from "../components/forms.tsx";
import { Loaded, PageHead } from "../components/page.tsx";
import { type Column, DataTable, Menu } from "../components/tables.tsx";
import { Badge, TimeAgo } from "../components/values.tsx";
import { capitalized } from "../format.ts";
import { useCall } from "../polling.ts";
import { current } from "../state.ts";

const ROLE_OPTIONS = ROLES.toReversed().map((value) => ({
  value,
  hint: ROLE_MEANINGS[value],
}));

/** The role and what it may do. */
export const roleText = (role: Role): string => `${capitalized(role)}: ${ROLE_MEANINGS[role]}`;

export function OperatorListPage() {
  const operators = useCall("listOperators");
  return (
    <>
      <PageHead title="Operators">
        {may("createOperator") && (
          <DialogButton class="primary" dialog={() => <CreateDialog />}>
            Create operator
          </DialogButton>
        )}
      </PageHead>
      <section>
        <p class="muted">
          People and programs, each with a token and a role. The audit trail names them. Whoever is revoked is
          out within one second, on every server.
        </p>
        <Loaded of={operators}>
          {({ items }) => (
            <DataTable
              caption="Operators"
              columns={COLUMNS}
              rows={items.toSorted(byState)}
              keyOf={({ id }) => `${id}`}
            />
          )}
        </Loaded>
      </section>
    </>
  );
}

/** Operators who are revoked come last. */
function byState(a: OperatorView, b: OperatorView): number {
  return Number(a.state !== "active") - Number(b.state !== "active");
}

const COLUMNS: readonly Column<OperatorView>[] = [
  {
    heading: "Name",
    position: "lead",
    cell: ({ id, name, hint }) => (
      <>
        <a href={`/audit?${new URLSearchParams({ operator: name })}`} title={`What ${name} has done`}>
          <bdi class="name">{name}</bdi>
        </a>
        <span class="sub key-hints">
          <span class="mono">{hint}</span>
          {id === current.operator?.id && <Badge meaning="muted" text="you" />}
        </span>
      </>
    ),
  },
  { heading: "Role", cell: ({ role }) => <span title={ROLE_MEANINGS[role]}>{capitalized(role)}</span> },
  {
    heading: "State",
    position: "at-end",
    cell: ({ state }) => <Badge meaning={state === "active" ? "ok" : "muted"} text={state} />,
  },
  {
    heading: "Token made",
    position: "wide-only",
    cell: ({ tokenCreatedAt }) => <TimeAgo at={tokenCreatedAt} />,
  },
  { heading: "Last used", cell: ({ lastUsedAt }) => <TimeAgo at={lastUsedAt} none="never used" /> },
  { heading: "Actions", position: "menu-cell", cell: OperatorMenu },
];

function OperatorMenu({ id, name, state }: OperatorView) {
  const isSelf = id === current.operator?.id;
  if (state !== "active" || (!isSelf && !may("revokeOperator"))) return null;
  return (
    <Menu label={`Actions for ${name}`}>
      <ActionButton
        label="Rotate token"
        title="Rotate the token of"
        name={name}
        run={async () => tokenOf(await call("rotateOperator", { id }))}
        submitText="Rotate token"
        text={`The present token stops working within one second, on every server, and ${isSelf ? "your other" : "all"} sessions end.`}
      />
      {!isSelf && (
        <ActionButton
          class="danger"
          title="Revoke"
          name={name}
          shortName={`operator ${id}`}
          isFinal
          asksReason
          run={(body) => call("revokeOperator", { id, body })}
          done="Revoked"
          text="The token stops working and all sessions end within one second, on every server, for good. The name is not used again."
        />
      )}
    </Menu>
  );
}

/** Its token, which is shown once. */
const tokenOf = ({ operator, token }: OperatorWithToken) =>
  ({ name: operator.name, secret: token, noun: "token" }) as const;

function CreateDialog() {
  const { values, inputOf } = useDraft<BodyOf<"createOperator">>({ name: "", role: "viewer" });
  return (
    <ActionDialog
      title="Create an operator"
      run={async () => tokenOf(await call("createOperator", { body: values }))}
      submitText="Create operator"
    >
      <TextField
        hint="In lower case, such as ann, ann@example.com or prometheus"
        required
        autofocus
        {...inputOf("name")}
      />
      <Choices options={ROLE_OPTIONS} {...inputOf("role")} />
    </ActionDialog>
  );
}
