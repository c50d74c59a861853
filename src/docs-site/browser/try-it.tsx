import { render } from "preact";
import type { TryItData } from "../try-it-data.ts";
import { type KeyMemory, remember, rememberedKey } from "./try-it/key.ts";
import { TryItForm } from "./try-it/try-it-form.tsx";

/** Puts a form into each section that can send requests; see `TryItData`. */
export function startTryIt(): void {
  const text = document.querySelector("#try-it-data")?.textContent;
  // The server wrote it for this script.
  if (text) showForms(JSON.parse(text));
}

/** All forms of a page have the same key. */
function showForms(data: TryItData): void {
  const forms = [...document.querySelectorAll<HTMLElement>("[data-try-it]")].flatMap((section) => {
    const operation = data.operations.find(({ id }) => id === section.dataset["tryIt"]);
    return operation === undefined ? [] : [{ section, operation }];
  });
  for (const { section } of forms) section.replaceChildren();
  show(rememberedKey());
  scrollToTarget();

  function show(memory: KeyMemory): void {
    for (const { section, operation } of forms)
      render(
        <TryItForm data={data} operation={operation} memory={memory} onMemoryChange={change} />,
        section,
      );
  }

  function change(memory: KeyMemory): void {
    show({ ...memory, isRemembered: remember(memory) });
  }
}

/** The browser has already scrolled to the row that the address names, which was replaced since. */
function scrollToTarget(): void {
  const id = location.hash.slice(1);
  if (id !== "") document.querySelector(`#${CSS.escape(id)}`)?.scrollIntoView();
}
