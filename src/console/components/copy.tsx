import { useState } from "preact/hooks";

interface CopyProps {
  /** What is copied, for screen readers: "secret". */
  readonly what: string;
  readonly text: string;
  readonly onCopied?: () => void;
}

/** Copies a text. Where the browser forbids it, the text is there to be selected. */
export function CopyButton({ what, text, onCopied }: CopyProps) {
  const [state, setState] = useState<"ready" | "copied" | "failed">("ready");
  return (
    <button
      type="button"
      aria-label={`Copy ${what}`}
      onClick={async () => {
        const isCopied = await copy(text);
        setState(isCopied ? "copied" : "failed");
        if (isCopied) onCopied?.();
      }}
    >
      <span aria-live="polite">{TEXTS[state]}</span>
    </button>
  );
}

const TEXTS = { ready: "Copy", copied: "Copied ✓", failed: "Press Ctrl-C" } as const;

async function copy(text: string): Promise<boolean> {
  try {
    await navigator.clipboard.writeText(text);
    return true;
  } catch {
    // Over plain HTTP a browser offers the clipboard on the loopback address only.
    return false;
  }
}
