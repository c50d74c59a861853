import type { ComponentChildren } from "preact";
import { useEffect, useRef } from "preact/hooks";
import { addCopyButtons } from "../copy.ts";

/** Plain text with `code` in backticks. */
export function CodeSpans({ text }: { readonly text: string }) {
  return (
    <>{text.split("`").map((part, index) => (index % 2 === 1 ? <code key={index}>{part}</code> : part))}</>
  );
}

interface CodeBlockProps {
  /** What it shows, for screen readers: "Request". */
  readonly label: string;
  readonly children: ComponentChildren;
}

/** As the code blocks of the page: it scrolls by itself and has a button that copies it. */
export function CodeBlock({ label, children }: CodeBlockProps) {
  const block = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (block.current?.parentElement) addCopyButtons(block.current.parentElement);
  }, []);
  return (
    <div class="code" ref={block}>
      <pre tabIndex={0} role="region" aria-label={label}>
        <code>{children}</code>
      </pre>
    </div>
  );
}
