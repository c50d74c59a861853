import { options } from "preact";
import { printableLines } from "../text/formatting.ts";

const ATTRIBUTES = ["title", "aria-label"] as const;

/**
 * Every text of the pages shows characters that turn text around, or are not seen, as the command line shows them.
 * Fields of forms have them as they are.
 */
export function startPrintableText(): void {
  options.vnode = (vnode: { type: unknown; props: unknown }) => {
    const { type, props } = vnode;
    // A text has no type.
    if (type === null && typeof props === "string") vnode.props = printableLines(props);
    if (typeof type !== "string" || typeof props !== "object" || props === null) return;
    for (const name of ATTRIBUTES) {
      const text: unknown = Reflect.get(props, name);
      if (typeof text === "string") Reflect.set(props, name, printableLines(text));
    }
  };
}
