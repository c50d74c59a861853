import type { ComponentChildren } from "preact";
import { useState } from "preact/hooks";
import { call, type Key, may } from "../admin-api.ts";
import { capitalized } from "../format.ts";
import { refresh } from "../polling.ts";
import { ActionDialog, FormDialog, SecretDialog, type SecretDialogProps, typeableName } from "./dialogs.tsx";
import { Choices } from "./forms.tsx";
import { TimeAgo } from "./values.tsx";

type KeyAction = "unban" | "rotate" | "disable" | "enable" | "revoke";

interface ActionRule {
  readonly action: KeyAction;
  readonly name: string;
  /** The states of a key in which the action makes sense. */
  readonly states: readonly Key["state"][];
}

const ACTIONS: readonly ActionRule[] = [
  { action: "unban", name: "Unban", states: ["banned"] },
  { action: "rotate", name: "Rotate secret", states: ["active", "banned", "disabled"] },
  { action: "disable", name: "Disable", states: ["active", "banned"] },
  { action: "enable", name: "Enable", states: ["disabled"] },
  { action: "revoke", name: "Revoke", states: ["active", "banned", "disabled", "expired"] },
];

/** The action that a person has chosen for a key, before it is done. */
export interface ChosenAction {
  readonly action: KeyAction;
  readonly apiKey: Key;
}

interface ActionButtonsProps {
  readonly apiKey: Key;
  readonly choose: (chosen: ChosenAction) => void;
  /** Only what can be undone, or only what cannot. */
  readonly isFinal?: boolean;
}

/** What can be done with the key as it is. */
export function KeyActionButtons({ apiKey, choose, isFinal }: ActionButtonsProps) {
  const isShown = ({ action, states }: ActionRule) =>
    may(`${action}Key`) &&
    states.includes(apiKey.state) &&
    (isFinal === undefined || isFinal === (action === "revoke"));
  return (
    <>
      {ACTIONS.filter(isShown).map(({ action, name }) => (
        <button
          key={action}
          type="button"
          class={action === "revoke" ? "danger" : undefined}
          onClick={() => choose({ action, apiKey })}
        >
          {name}
        </button>
      ))}
    </>
  );
}

interface KeyActionDialogProps extends ChosenAction {
  readonly publicUrl: string;
  readonly onClose: () => void;
}

/** What the actions on a key ask before they are done. */
export function KeyActionDialog(props: KeyActionDialogProps) {
  const { action, apiKey, onClose } = props;
  if (action === "rotate") return <RotateDialog {...props} />;
  const { operation, done, consequence } = CHANGES[action];
  return (
    <ActionDialog
      action={capitalized(action)}
      name={apiKey.name}
      shortName={`key ${apiKey.id}`}
      isFinal={action === "revoke"}
      run={() => call(operation, { id: apiKey.id })}
      done={done}
      onClose={onClose}
    >
      {consequence(apiKey)}
    </ActionDialog>
  );
}

interface Change {
  readonly operation: "unbanKey" | "disableKey" | "enableKey" | "revokeKey";
  /** What was done, before the name. */
  readonly done: string;
  readonly consequence: (key: Key) => ComponentChildren;
}

const CHANGES: Readonly<Record<Exclude<KeyAction, "rotate">, Change>> = {
  unban: {
    operation: "unbanKey",
    done: "Ended the ban of",
    consequence: ({ bannedUntil }) => (
      <>
        The ban ends within one second instead of <TimeAgo at={bannedUntil} />. Strikes are cleared, and the
        next ban has the shortest length again. Used requests stay counted.
      </>
    ),
  },
  disable: {
    operation: "disableKey",
    done: "Disabled",
    consequence: (key) => (
      <>
        Requests get 401 within one second; you can enable it again. Secrets, plan and usage stay.
        <LastUse {...key} />
      </>
    ),
  },
  enable: {
    operation: "enableKey",
    done: "Enabled",
    consequence: () => "Requests with its secrets are accepted again within one second.",
  },
  revoke: {
    operation: "revokeKey",
    done: "Revoked",
    consequence: (key) => (
      <>
        Requests with this key fail with 401 within one second, on every server. A revoked key never works
        again: clients need a new one.
        <LastUse {...key} />
      </>
    ),
  },
};

function LastUse({ lastUsedAt }: Pick<Key, "lastUsedAt">) {
  if (lastUsedAt === null) return null;
  return (
    <>
      {" "}
      It was last used <TimeAgo at={lastUsedAt} />.
    </>
  );
}

const HOUR = 3_600;
const OVERLAPS = [
  { value: "0", text: "None", hint: "earlier secrets fail within one second" },
  { value: `${HOUR}`, text: "1 hour" },
  { value: `${24 * HOUR}`, text: "24 hours" },
  { value: `${7 * 24 * HOUR}`, text: "7 days" },
  { value: `${30 * 24 * HOUR}`, text: "30 days" },
] as const;
type Overlap = (typeof OVERLAPS)[number]["value"];

function RotateDialog({ apiKey, publicUrl, onClose }: KeyActionDialogProps) {
  const [overlap, setOverlap] = useState<Overlap>(`${24 * HOUR}`);
  const [rotated, setRotated] = useState<Pick<SecretDialogProps, "secret" | "overlapEndsAt">>();
  const hasOverlap = overlap !== "0";

  if (rotated !== undefined)
    return <SecretDialog {...rotated} name={apiKey.name} publicUrl={publicUrl} onClose={onClose} />;

  async function rotate() {
    const body = { overlapSeconds: Number(overlap) };
    const { secret, overlapEndsAt } = await call("rotateKey", { id: apiKey.id, body });
    setRotated({ secret, ...(hasOverlap && { overlapEndsAt }) });
    await refresh();
  }
  return (
    <FormDialog
      title="Rotate the secret of"
      name={apiKey.name}
      onClose={onClose}
      onSubmit={rotate}
      submit="Rotate secret"
      confirmation={hasOverlap ? undefined : typeableName(apiKey.name, `key ${apiKey.id}`)}
    >
      <p>
        You get a new secret for this key. Plan, usage and orders stay. Clients have to switch during the
        overlap.
      </p>
      <Choices
        label="Earlier secrets still work for"
        value={overlap}
        options={OVERLAPS}
        onChange={setOverlap}
      />
    </FormDialog>
  );
}
