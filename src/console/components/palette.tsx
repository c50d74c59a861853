/* One field that leads to every page, key and request. */

import { useEffect, useId, useState } from "preact/hooks";
import { PAGE_NAMES, PAGES } from "../../operator/console/pages.ts";
import { call, mayOpen } from "../admin-api.ts";
import { navigate } from "../router.ts";
import { current } from "../state.ts";
import { closeDialog, Modal, openDialog } from "./dialogs.tsx";
import { SECRET_TEXT } from "./filters.tsx";

const isMac = /Mac|iPhone|iPad/.test(navigator.platform);
const openPalette = () => openDialog(() => <Palette />);

/** Ctrl K, or ⌘ K, opens it. A dialog that is open stays: it may have a secret. */
export function startPaletteKey(): void {
  document.addEventListener("keydown", (event) => {
    if (event.key !== "k" || !(isMac ? event.metaKey : event.ctrlKey)) return;
    event.preventDefault();
    if (current.isSignedIn && current.dialog === undefined) openPalette();
  });
}

export function PaletteButton() {
  return (
    <button type="button" class="go-to" onClick={openPalette}>
      Go to … <kbd>{isMac ? "⌘ K" : "Ctrl K"}</kbd>
    </button>
  );
}

interface Place {
  readonly text: string;
  readonly kind: string;
  readonly url: string;
}

const MAX_KEYS = 6;
const TYPING_MS = 150;
export const REQUEST_ID = /^[\w.-]{8,128}$/;

function pagesOf(text: string): Place[] {
  return PAGE_NAMES.filter((name) => !PAGES[name].includes("{") && mayOpen(name))
    .filter((name) => name.toLowerCase().includes(text.toLowerCase()))
    .map((name) => ({ text: name, kind: "Page", url: PAGES[name] }));
}

/** The keys that a text finds, a moment after it was typed. */
function useKeys(text: string): readonly Place[] {
  const [places, setPlaces] = useState<readonly Place[]>([]);
  useEffect(() => {
    setPlaces([]);
    if (text === "" || SECRET_TEXT.test(text)) return undefined;
    let isCurrent = true;
    const timer = setTimeout(async () => {
      const { items } = await call("listKeys", { query: { search: text, limit: MAX_KEYS } });
      // A label or an owner has the text, too.
      const rank = ({ name }: { readonly name: string }) =>
        Number(!name.toLowerCase().includes(text.toLowerCase()));
      if (isCurrent)
        setPlaces(
          items
            .toSorted((a, b) => rank(a) - rank(b))
            .map(({ id, name, owner }) => {
              const kind = owner === null ? "Key" : `Key of ${owner}`;
              return { text: name, kind, url: `/keys/${id}` };
            }),
        );
    }, TYPING_MS);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [text]);
  return places;
}

function go(place: Place | undefined): void {
  if (place === undefined) return;
  closeDialog();
  navigate(place.url);
}

function Palette() {
  const id = useId();
  const [typed, setTyped] = useState("");
  const [chosen, setChosen] = useState(0);
  const text = typed.trim();
  const isSecret = SECRET_TEXT.test(text);
  const request = { text, kind: "Request", url: `/requests?${new URLSearchParams({ requestId: text })}` };
  const places = [
    ...pagesOf(text),
    ...useKeys(text),
    ...(REQUEST_ID.test(text) && !isSecret ? [request] : []),
  ];
  const at = Math.min(chosen, places.length - 1);
  return (
    <Modal title="Go to" onCancel={closeDialog}>
      <div class="palette">
        <input
          type="text"
          role="combobox"
          autofocus
          autocomplete="off"
          spellcheck={false}
          aria-label="A page, a key or a request"
          aria-expanded="true"
          aria-controls={id}
          aria-activedescendant={places.length === 0 ? undefined : `${id}-${at}`}
          placeholder="A page, a key or the id of a request"
          maxLength={128}
          value={typed}
          onInput={({ currentTarget }) => {
            setTyped(currentTarget.value);
            setChosen(0);
          }}
          onKeyDown={(event) => {
            const step = { ArrowDown: 1, ArrowUp: -1 }[event.key];
            if (step !== undefined) setChosen((at + step + places.length) % places.length);
            else if (event.key === "Enter") go(places[at]);
            else return;
            event.preventDefault();
          }}
        />
        <ul id={id} role="listbox" aria-label="Places">
          {places.map((place, i) => (
            <li
              key={place.url}
              id={`${id}-${i}`}
              role="option"
              aria-selected={i === at}
              onPointerMove={() => setChosen(i)}
              onClick={() => go(place)}
            >
              <bdi class="one-line">{place.text}</bdi> <span class="muted small">{place.kind}</span>
            </li>
          ))}
        </ul>
        <p class="hint" role="status">
          {isSecret && "That is a secret. The search of the keys finds its key."}
          {places.length === 0 && !isSecret && "Nothing has that name."}
        </p>
      </div>
    </Modal>
  );
}
