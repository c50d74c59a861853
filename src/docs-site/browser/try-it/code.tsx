import { useEffect, useRef } from "preact/hooks";
import { tokensOf } from "../../markdown/highlight.ts";
import { addCopyButtons } from "../copy.ts";

/** Plain text with `code` in backticks. */
export function CodeSpans({ text }: { readonly text: string }) {
  return (
    <>{text.split("`").map((part, index) => (index % 2 === 1 ? <code key={index}>{part}</code> : part))}</>
  );
}

interface CodeBlockProps {
  /** What it shows, for screen readers: "Request as sent". */
  readonly label: string;
  /** Shown above it. */
  readonly title?: string;
  readonly code: string;
  readonly syntax: "http" | "json" | "sh" | "text";
}

/** As the code blocks of the page: it scrolls by itself and has a button that copies it. */
export function CodeBlock({ label, title, code, syntax }: CodeBlockProps) {
  const block = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (block.current?.parentElement) addCopyButtons(block.current.parentElement);
  }, []);
  return (
    <div class="code" ref={block}>
      {title !== undefined && <div class="code-title">{title}</div>}
      <pre tabIndex={0} role="region" aria-label={label}>
        <code>
          {tokensOf(code, syntax).map(({ kind, text }, index) =>
            kind === undefined ? (
              text
            ) : (
              <span class={`token-${kind}`} key={index}>
                {text}
              </span>
            ),
          )}
        </code>
      </pre>
    </div>
  );
}
