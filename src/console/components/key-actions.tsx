import type { ComponentChildren } from "preact";

import { type AdminOperationId, call, type Key } from "../admin-api.ts";
import { may } from "../session.ts";
import { capitalized } from "../../pages/format.ts";
import { useCall } from "../polling.ts";
import { ActionDialog } from "./action-dialog.tsx";
import { DialogButton } from "./modal.tsx";
import { RotateDialog } from "./rotate-dialog.tsx";
import { TimeAgo } from "./values.tsx";

/** What each action calls, and the states of a key in which it makes sense, in the order of the buttons. */
const ACTIONS = {
  unban: { operation: "unbanKey", states: ["banned"] },
  rotate: { operation: "rotateKey", states: ["active", "banned", "disabled"] },
  disable: { operation: "disableKey", states: ["active", "banned"] },
  enable: { operation: "enableKey", states: ["disabled"] },
  revoke: { operation: "revokeKey", states: ["active", "banned", "disabled", "expired"] },
} as const satisfies Readonly<Record<string, Action>>;

interface Action {
  readonly operation: AdminOperationId;
  readonly states: readonly Key["state"][];
}

type KeyAction = keyof typeof ACTIONS;
/** What makes a key work again: it is what one comes for when the key does not. */
const RESTORING: ReadonlySet<KeyAction> = new Set(["unban", "enable"]);
const ACTION_NAMES = Object.keys(ACTIONS) as KeyAction[];

interface KeyActionButtonsProps {
  readonly apiKey: Key;
  readonly shows: "all" | "reversible" | "permanent";
}

/** What can be done with the key as it is. */
export function KeyActionButtons({ apiKey, shows }: KeyActionButtonsProps) {
  const isShown = (action: KeyAction) =>
    may(ACTIONS[action].operation) &&
    ACTIONS[action].states.some((state) => state === apiKey.state) &&
    (shows === "all" || shows === (action === "revoke" ? "permanent" : "reversible"));
  return (
    <>
      {ACTION_NAMES.filter(isShown).map((action) => (
        <DialogButton
          // One button disables and enables: it keeps the focus.
          key={action === "enable" ? "disable" : action}
          class={
            action === "revoke"
              ? "danger"
              : shows === "reversible" && RESTORING.has(action)
                ? "primary"
                : undefined
          }
          dialog={() => <KeyActionDialog action={action} shown={apiKey} />}
        >
          {action === "rotate" ? "Rotate secret" : capitalized(action)}
        </DialogButton>
      ))}
    </>
  );
}

/** What the actions on a key ask before they are done. */
function KeyActionDialog({ action, shown }: { readonly action: KeyAction; readonly shown: Key }) {
  const { data: apiKey = shown } = useCall("getKey", { id: shown.id });
  if (action === "rotate") return <RotateKeyDialog {...apiKey} />;
  const { done, consequence } = CHANGES[action];
  return (
    <ActionDialog
      title={capitalized(action)}
      name={apiKey.name}
      shortName={`key ${apiKey.id}`}
      isFinal={action === "revoke"}
      asksReason={action !== "enable"}
      run={(body) => call(ACTIONS[action].operation, { id: apiKey.id, ...(action !== "enable" && { body }) })}
      done={done}
      text={consequence(apiKey)}
    />
  );
}

interface Change {
  /** What was done, before the name. */
  readonly done: string;
  readonly consequence: (key: Key) => ComponentChildren;
}

const CHANGES: Readonly<Record<Exclude<KeyAction, "rotate">, Change>> = {
  unban: {
    done: "Ended the ban of",
    consequence: ({ bannedUntil }) => (
      <>
        The ban ends within one second instead of <TimeAgo at={bannedUntil} />. Strikes are cleared, and the
        next ban has the shortest length again. Used requests stay counted.
      </>
    ),
  },
  disable: {
    done: "Disabled",
    consequence: (key) => (
      <>
        Requests get 401 within one second; you can enable it again. Secrets, plan and used quotas stay.
        <LastUse {...key} />
      </>
    ),
  },
  enable: {
    done: "Enabled",
    consequence: () => "Requests with its secrets are accepted again within one second.",
  },
  revoke: {
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

const [HOUR_S, DAY_S] = [3_600, 86_400];

function RotateKeyDialog({ id, name }: Pick<Key, "id" | "name">) {
  return (
    <RotateDialog
      noun="secret"
      name={name}
      shortName={`key ${id}`}
      text="You get a new secret for this key. Plan, used quotas and orders stay. Clients have to switch during the overlap."
      label="Earlier secrets still work for"
      overlaps={[HOUR_S, DAY_S, 7 * DAY_S, 30 * DAY_S]}
      usual={DAY_S}
      isFinalAtOnce
      rotate={async (body) => ({ name, ...(await call("rotateKey", { id, body })) })}
    />
  );
}
