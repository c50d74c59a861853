/* One field that leads to every page, key and request. */

import { useEffect, useId, useState } from "preact/hooks";
import { messageOf } from "../../runtime/message-of.ts";
import { isMac } from "../../pages/clipboard.ts";
import { useCombobox } from "../../pages/combobox.ts";
import { PAGE_NAMES, PAGES } from "../../operator/console/pages.ts";
import { call } from "../admin-api.ts";
import { mayOpen } from "../session.ts";
import { navigate } from "../router.ts";
import { consoleState } from "../state.ts";
import { closeDialog, Modal, openDialog } from "./modal.tsx";
import { SECRET_BEYOND_HINT } from "../../domain/masks.ts";

const openPalette = () => openDialog(() => <Palette />);

/** Ctrl K, or ⌘ K, opens it. A dialog that is open stays: it may have a secret. */
export function startPaletteKey(): void {
  document.addEventListener("keydown", (event) => {
    if (event.key !== "k" || !(isMac ? event.metaKey : event.ctrlKey)) return;
    event.preventDefault();
    if (consoleState.isSignedIn && consoleState.dialog === undefined) openPalette();
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

interface FoundKeys {
  readonly places: readonly Place[];
  /** Undefined while the keys are loaded. */
  readonly status?: string;
}

const NO_KEYS: FoundKeys = { places: [], status: "" };

async function findKeys(search: string): Promise<FoundKeys> {
  try {
    const { items } = await call("listKeys", { query: { search, limit: MAX_KEYS } });
    // A label or an owner has the text, too.
    const rank = ({ name }: { readonly name: string }) =>
      Number(!name.toLowerCase().includes(search.toLowerCase()));
    const places = items
      .toSorted((a, b) => rank(a) - rank(b))
      .map(({ id, name, owner }) => {
        const kind = owner === null ? "Key" : `Key of ${owner}`;
        return { text: name, kind, url: `/keys/${id}` };
      });
    return { places, status: "" };
  } catch (error) {
    return {
      places: [],
      status: `Keys cannot be searched: ${messageOf(error)}`,
    };
  }
}

/** The keys that a text finds, a moment after it was typed. */
function useKeys(text: string): FoundKeys {
  const isSearched = text !== "" && !SECRET_BEYOND_HINT.test(text);
  const [found, setFound] = useState({ text: "", keys: NO_KEYS });
  useEffect(() => {
    if (!isSearched) return undefined;
    let isCurrent = true;
    const timer = setTimeout(async () => {
      const keys = await findKeys(text);
      if (isCurrent) setFound({ text, keys });
    }, TYPING_MS);
    return () => {
      isCurrent = false;
      clearTimeout(timer);
    };
  }, [text]);
  if (!isSearched) return NO_KEYS;
  return found.text === text ? found.keys : { places: [] };
}

function go(place: Place | undefined): void {
  if (place === undefined) return;
  closeDialog();
  navigate(place.url);
}

function Palette() {
  const id = useId();
  const [typed, setTyped] = useState("");
  const text = typed.trim();
  const isSecret = SECRET_BEYOND_HINT.test(text);
  const request = { text, kind: "Request", url: `/requests?${new URLSearchParams({ requestId: text })}` };
  const keys = useKeys(text);
  const places = [...pagesOf(text), ...keys.places, ...(REQUEST_ID.test(text) && !isSecret ? [request] : [])];
  const box = useCombobox(id, places.length, (index) => go(places[index]));
  return (
    <Modal title="Go to" class="palette-dialog" onCancel={closeDialog}>
      <div class="palette">
        <input
          type="text"
          {...box.input}
          list={undefined}
          autofocus
          spellcheck={false}
          aria-label="A page, a key or a request"
          aria-expanded="true"
          placeholder="A page, a key or the id of a request"
          maxLength={128}
          value={typed}
          onInput={({ currentTarget }) => {
            setTyped(currentTarget.value);
            box.choose(0);
          }}
        />
        <ul {...box.list} aria-label="Places">
          {places.map((place, i) => (
            <li
              key={place.url}
              {...box.option(i)}
              onPointerMove={() => box.choose(i)}
              onClick={() => go(place)}
            >
              <bdi class="one-line">{place.text}</bdi> <span class="muted small">{place.kind}</span>
            </li>
          ))}
        </ul>
        <p class="hint" role="status">
          {isSecret && "That is a secret. The search of the keys finds its key."}
          {!isSecret && (keys.status ?? "Searching …")}
          {places.length === 0 && keys.status === "" && !isSecret && "Nothing has that name."}
        </p>
      </div>
    </Modal>
  );
}
