import type { Key } from "../admin-api.ts";

/** Colours have four meanings and are used for nothing else. Each comes with a shape and a word. */
export type Meaning = "ok" | "limited" | "error" | "deprecated" | "none";

const SYMBOLS: Readonly<Record<Meaning, string>> = {
  ok: "●",
  limited: "▲",
  error: "■",
  deprecated: "◇",
  none: "○",
};

interface BadgeProps {
  readonly meaning: Meaning;
  readonly text: string;
}

export function Badge({ meaning, text }: BadgeProps) {
  return (
    <span class="badge" data-meaning={meaning}>
      <span class="symbol" aria-hidden="true">
        {SYMBOLS[meaning]}
      </span>
      {text}
    </span>
  );
}

const STATE_MEANINGS: Readonly<Record<Key["state"], Meaning>> = {
  active: "ok",
  disabled: "limited",
  expired: "none",
  revoked: "none",
  banned: "error",
};

export function StateBadge({ state }: Pick<Key, "state">) {
  return <Badge meaning={STATE_MEANINGS[state]} text={state} />;
}
