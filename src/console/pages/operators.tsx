import { useState } from "preact/hooks";
import { type Role, ROLE_MEANINGS, ROLES } from "../../domain/operators.ts";
import { call, may, type OperatorView, type OperatorWithToken, signedIn } from "../admin-api.ts";
import { ActionDialog, FormDialog } from "../components/dialogs.tsx";
import { Choices, TextField } from "../components/forms.tsx";
import { Loaded, PageHead } from "../components/page.tsx";
import { type Column, DataTable, Menu } from "../components/tables.tsx";
import { Badge, TimeAgo } from "../components/values.tsx";
import { capitalized } from "../format.ts";
import { usePolled } from "../polling.ts";

const ROLE_OPTIONS = ROLES.toReversed().map((value) => ({
  value,
  text: capitalized(value),
  hint: ROLE_MEANINGS[value],
}));

/** The role and what it may do. */
export const roleText = (role: Role): string => `${capitalized(role)}: ${ROLE_MEANINGS[role]}`;

/** What a person has chosen to do, before it is done. */
type Chosen = "create" | { readonly action: "rotate" | "revoke"; readonly operator: OperatorView };

export function OperatorListPage() {
  const operators = usePolled("operators", () => call("listOperators"));
  const [chosen, setChosen] = useState<Chosen>();
  const onClose = () => setChosen(undefined);
  return (
    <>
      <PageHead
        title="Operators"
        actions={
          may("createOperator") && (
            <button type="button" class="primary" onClick={() => setChosen("create")}>
              Create operator
            </button>
          )
        }
      />
      <section>
        <p class="muted">
          People and programs, each with a token and a role. The audit trail names them. Whoever is revoked is
          out within one second, on every server.
        </p>
        <Loaded of={operators}>
          {({ items }) => <OperatorTable operators={items} choose={setChosen} />}
        </Loaded>
      </section>
      {chosen === "create" && <CreateDialog onClose={onClose} />}
      {chosen !== undefined && chosen !== "create" && <OperatorDialog {...chosen} onClose={onClose} />}
    </>
  );
}

interface OperatorTableProps {
  readonly operators: readonly OperatorView[];
  readonly choose: (chosen: Chosen) => void;
}

/** Those who are revoked come last. */
function OperatorTable({ operators, choose }: OperatorTableProps) {
  const rows = operators.toSorted((a, b) => Number(a.state !== "active") - Number(b.state !== "active"));
  const columns: readonly Column<OperatorView>[] = [
    ...COLUMNS,
    {
      heading: "Actions",
      isMenu: true,
      cell(operator) {
        const isSelf = operator.id === signedIn.value?.id;
        const mayRotate = isSelf || may("revokeOperator");
        if (operator.state !== "active" || !mayRotate) return null;
        return (
          <Menu label={`Actions for ${operator.name}`}>
            <button type="button" onClick={() => choose({ action: "rotate", operator })}>
              Rotate token
            </button>
            {!isSelf && (
              <button type="button" class="danger" onClick={() => choose({ action: "revoke", operator })}>
                Revoke
              </button>
            )}
          </Menu>
        );
      },
    },
  ];
  return <DataTable caption="Operators" columns={columns} rows={rows} keyOf={({ id }) => `${id}`} />;
}

const COLUMNS: readonly Column<OperatorView>[] = [
  {
    heading: "Name",
    isLead: true,
    cell: ({ id, name, hint }) => (
      <>
        <a href={`/audit?${new URLSearchParams({ operator: name })}`} title={`What ${name} has done`}>
          <bdi class="name">{name}</bdi>
        </a>
        <span class="sub key-hints">
          <span class="mono">{hint}</span>
          {id === signedIn.value?.id && <Badge meaning="muted" text="you" />}
        </span>
      </>
    ),
  },
  { heading: "Role", cell: ({ role }) => <span title={ROLE_MEANINGS[role]}>{capitalized(role)}</span> },
  {
    heading: "State",
    isAtEnd: true,
    cell: ({ state }) => <Badge meaning={state === "active" ? "ok" : "muted"} text={state} />,
  },
  { heading: "Token made", isWide: true, cell: ({ tokenCreatedAt }) => <TimeAgo at={tokenCreatedAt} /> },
  { heading: "Last used", cell: ({ lastUsedAt }) => <TimeAgo at={lastUsedAt} none="never used" /> },
];

interface DialogProps {
  readonly onClose: () => void;
}

/** Its token, which is shown once. */
const tokenOf = ({ operator, token }: OperatorWithToken) =>
  ({ name: operator.name, secret: token, noun: "token" }) as const;

function CreateDialog({ onClose }: DialogProps) {
  const [name, setName] = useState("");
  const [role, setRole] = useState<Role>("viewer");
  return (
    <FormDialog
      title="Create an operator"
      onClose={onClose}
      run={async () => tokenOf(await call("createOperator", { body: { name, role } }))}
      submit="Create operator"
    >
      <TextField
        label="Name"
        field="name"
        hint="In lower case, such as ann, ann@example.com or prometheus"
        required
        autofocus
        maxLength={64}
        value={name}
        onInput={setName}
      />
      <Choices label="Role" value={role} options={ROLE_OPTIONS} onChange={setRole} />
    </FormDialog>
  );
}

function OperatorDialog({ action, operator: { id, name }, onClose }: Exclude<Chosen, string> & DialogProps) {
  return action === "revoke" ? (
    <ActionDialog
      title="Revoke"
      name={name}
      shortName={`operator ${id}`}
      isFinal
      run={() => call("revokeOperator", { id })}
      done="Revoked"
      onClose={onClose}
    >
      The token stops working and all sessions end within one second, on every server, for good.
    </ActionDialog>
  ) : (
    <FormDialog
      title="Rotate the token of"
      name={name}
      onClose={onClose}
      run={async () => tokenOf(await call("rotateOperator", { id }))}
      submit="Rotate token"
    >
      <p>
        The present token stops working within one second, on every server, and{" "}
        {id === signedIn.value?.id ? "your other sessions end." : "all sessions end."}
      </p>
    </FormDialog>
  );
}
