import { NO_TOKEN, type Role, ROLE_MEANINGS, ROLES } from "../../domain/operators.ts";
import type { BodyOf } from "../../operator/operations.ts";
import { call, type OperatorView, type OperatorWithToken } from "../admin-api.ts";
import { may } from "../session.ts";
import { ActionButton, ActionDialog } from "../components/action-dialog.tsx";
import { DialogButton } from "../components/modal.tsx";
import { Choices, ExpiryField, TextField } from "../components/fields.tsx";
import { useDraft } from "../components/draft.tsx";
import { StateBadge } from "../components/key-columns.tsx";
import { Loaded, PageHead } from "../components/page.tsx";
import { RotateDialog } from "../components/rotate-dialog.tsx";
import { type Column, DataTable, Menu } from "../components/tables.tsx";
import { TimeAgo } from "../components/values.tsx";
import { Copyable } from "../components/copying.tsx";
import { capitalized, localInputOf, timeOfInput } from "../../pages/format.ts";
import { useCall } from "../polling.ts";
import { consoleState } from "../state.ts";

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
          People and programs, each with a role, and with a token or the sign-in of the company. The audit
          trail names them. A new role or a revocation takes effect within one second, on every server.
        </p>
        <Loaded of={operators}>
          {({ items }) => (
            <DataTable
              caption="Operators"
              columns={COLUMNS}
              rows={items.toSorted(byState)}
              identityOf={({ id }) => `${id}`}
            />
          )}
        </Loaded>
      </section>
    </>
  );
}

/** Operators who are revoked come last. */
function byState(a: OperatorView, b: OperatorView): number {
  return Number(a.state === "revoked") - Number(b.state === "revoked");
}

const COLUMNS: readonly Column<OperatorView>[] = [
  {
    heading: "Name",
    position: "lead",
    cell: ({ id, name, hint, overlapEndsAt, subject }) => (
      <>
        <a href={`/audit?${new URLSearchParams({ operator: name })}`} title={`What ${name} has done`}>
          <bdi class="name">{name}</bdi>
        </a>
        <span class="sub key-hints">
          {subject !== undefined && <span title={subject}>signs in with the provider</span>}
          {hint.includes("…") ? (
            <Copyable text={hint} />
          ) : (
            subject === undefined && <span class="mono">{hint}</span>
          )}
          {id === consoleState.operator?.id && <span class="label">you</span>}
        </span>
        {overlapEndsAt !== null && (
          <span class="sub">
            The earlier token ends <TimeAgo at={overlapEndsAt} />
          </span>
        )}
      </>
    ),
  },
  { heading: "Role", cell: ({ role }) => <span title={ROLE_MEANINGS[role]}>{capitalized(role)}</span> },
  {
    heading: "State",
    position: "at-end",
    // A sign-in with the provider expires after 12 hours, and the next one lets them in again.
    cell: ({ state, expiresAt, subject }) => (
      <StateBadge state={state} expiresAt={subject === undefined ? expiresAt : null} />
    ),
  },
  {
    heading: "Expires",
    position: "wide-only",
    cell: ({ expiresAt }) => <TimeAgo at={expiresAt} none="never" />,
  },
  {
    heading: "Token made",
    position: "wide-only",
    cell: ({ hint, tokenCreatedAt }) => <TimeAgo at={hint === NO_TOKEN ? null : tokenCreatedAt} none="–" />,
  },
  {
    heading: "Last used",
    position: "below-end",
    cell: ({ lastUsedAt }) => <TimeAgo at={lastUsedAt} none="never used" />,
  },
  { heading: "Actions", position: "menu-cell", cell: OperatorMenu },
];

function OperatorMenu(operator: OperatorView) {
  const { id, name, state, subject } = operator;
  const isSelf = id === consoleState.operator?.id;
  const mayRotate = state === "active" && subject === undefined;
  if (state === "revoked" || (!may("revokeOperator") && !(isSelf && mayRotate))) return null;
  return (
    <Menu label={`Actions for ${name}`}>
      {may("updateOperator") && <DialogButton dialog={() => <EditDialog {...operator} />}>Edit</DialogButton>}
      {mayRotate && (
        <DialogButton dialog={() => <RotateTokenDialog {...operator} />}>Rotate token</DialogButton>
      )}
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
          text="The token stops working and all sessions end within one second, on every server, for good. A new operator of that name lets them in again."
        />
      )}
    </Menu>
  );
}

/** The token of an operator, which is shown once. */
const tokenOf = ({ operator, token }: OperatorWithToken) =>
  ({
    name: operator.name,
    secret: token,
    noun: "token",
    overlapEndsAt: operator.overlapEndsAt ?? undefined,
  }) as const;

function RotateTokenDialog({ id, name }: OperatorView) {
  const whose = id === consoleState.operator?.id ? "your other" : "all";
  return (
    <RotateDialog
      noun="token"
      name={name}
      text={`You get a new token. When the overlap is over, the earlier token stops working, on every server, and ${whose} sessions end.`}
      label="The earlier token still works for"
      overlaps={[600, 3_600, 86_400]}
      usual={0}
      rotate={async (body) => tokenOf(await call("rotateOperator", { id, body }))}
    />
  );
}

function EditDialog({ id, name, role, expiresAt }: OperatorView) {
  const latest: OperatorFormValues = { role, expiresAt: localInputOf(expiresAt) };
  const { isDirty, inputOf, sendChanges } = useDraft(latest);
  return (
    <ActionDialog
      title="Edit"
      name={name}
      shortName={`operator ${id}`}
      submitText="Save changes"
      isReady={isDirty}
      done="Saved"
      run={() => sendChanges(changeOf, (body) => call("updateOperator", { id, body }))}
      text="Token and sessions follow within one second, on every server."
    >
      <Choices options={ROLE_OPTIONS} {...inputOf("role")} />
      <ExpiryField {...inputOf("expiresAt")} />
    </ActionDialog>
  );
}

/** What both forms hold: text as it was typed. */
type OperatorFormValues = Readonly<{ role: Role; expiresAt: string }>;

const changeOf = ({ role, expiresAt }: OperatorFormValues): BodyOf<"updateOperator"> => ({
  role,
  expiresAt: timeOfInput(expiresAt),
});

function CreateDialog() {
  const { values, inputOf } = useDraft<OperatorFormValues & Readonly<{ name: string }>>({
    name: "",
    role: "viewer",
    expiresAt: "",
  });
  const { name, role } = values;
  const body = { name, role, expiresAt: timeOfInput(values.expiresAt) };
  return (
    <ActionDialog
      title="Create an operator"
      run={async () => tokenOf(await call("createOperator", { body }))}
      submitText="Create operator"
    >
      <TextField
        hint="In lower case, such as ann, ann@example.com or prometheus"
        required
        autofocus
        {...inputOf("name")}
      />
      <Choices options={ROLE_OPTIONS} {...inputOf("role")} />
      <ExpiryField {...inputOf("expiresAt")} />
    </ActionDialog>
  );
}
