/* What a person copies: a secret, a command, an identifier. */

import type { ComponentChildren, RefObject } from "preact";
import { useRef, useState } from "preact/hooks";
import { COPY_TEXTS, copyText } from "../../pages/clipboard.ts";
import { announce } from "../state.ts";

interface CopyProps {
  /** What is copied, for screen readers: "secret". */
  readonly what: string;
  /** The element that shows it. */
  readonly shown: RefObject<HTMLElement | null>;
  readonly text: string;
  readonly isPrimary?: boolean;
  readonly onCopied: () => void;
}

/** A command to copy. */
export function CurlCommand(props: Omit<CopyProps, "what" | "shown">) {
  const shown = useRef<HTMLPreElement>(null);
  return (
    <div class="copy">
      <pre ref={shown} tabIndex={0} aria-label="curl command" onCopy={props.onCopied}>
        {props.text}
      </pre>
      <CopyButton what="curl command" shown={shown} {...props} />
    </div>
  );
}

export function CopyButton({ what, shown, text, isPrimary, onCopied }: CopyProps) {
  const [state, setState] = useState<keyof typeof COPY_TEXTS>("ready");
  async function copy() {
    if (shown.current === null) return;
    const result = await copyText(text, shown.current);
    setState(result);
    if (result === "copied") onCopied();
  }
  return (
    <button
      type="button"
      class={isPrimary ? "primary" : undefined}
      aria-label={`Copy ${what}`}
      onClick={copy}
    >
      <span aria-live="polite">{COPY_TEXTS[state]}</span>
    </button>
  );
}

interface CopyableProps {
  readonly text: string;
  /** What shows the text; by default code. */
  readonly children?: ComponentChildren;
}

/** An identifier or the hint of a secret, and a button that copies it. */
export function Copyable({ text, children = <code>{text}</code> }: CopyableProps) {
  const shown = useRef<HTMLSpanElement>(null);
  async function copy() {
    if (shown.current === null) return;
    const result = await copyText(text, shown.current);
    announce(result === "copied" ? `Copied ${text}.` : `It is selected: ${COPY_TEXTS.failed}.`);
  }
  return (
    <span class="copyable">
      <span ref={shown}>{children}</span>
      <button type="button" class="copy-icon" aria-label={`Copy ${text}`} title="Copy" onClick={copy}>
        <svg viewBox="0 0 16 16" width="14" height="14" fill="none" stroke="currentColor" aria-hidden="true">
          <path d="M5.5 5.5v-3h8v8h-3m-8-5h8v8h-8z" stroke-width="1.3" />
        </svg>
      </button>
    </span>
  );
}
