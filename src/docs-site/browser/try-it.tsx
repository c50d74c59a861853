import { shortDuration } from "../../text/durations.ts";
import { type ComponentChildren, createPortal, render } from "preact";
import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { readStored, writeStored } from "../../pages/storage.ts";
import { nextCursor } from "../../client/response.ts";
import { BASE_PATH } from "../../domain/paths.ts";
import { highlight } from "../highlight.ts";
import { EXAMPLE_LANGUAGES, type TryItData } from "../page-data.ts";
import { urlOf } from "./page-controls.ts";
import { type Example, programsOf } from "./programs.ts";
import { initialValues, obstacleOf, requestOf, type Values } from "./request.ts";
import { ResponseView, useSecondsUntil } from "./response-view.tsx";
import { type CallOutcome, retryAtOf, send } from "./response.ts";
import { FieldInput, FORM_ID, inputIdOf, KeyField, type KeyMemory } from "./try-it-fields.tsx";

/** Where this tab keeps the API key, if the person asks to remember it. */
const KEY = "petstore-docs-key";

/** Turns the lists of parameters into a form, and the example next to them into what it sends; see `TryItData`. */
export function startTryIt(): void {
  const text = document.querySelector("#try-it-data")?.textContent;
  const host = document.querySelector(".try-it");
  if (text === undefined || host === null) return;
  // The server wrote it for this script.
  render(<TryItForm data={JSON.parse(text)} />, host);
  // The browser has already scrolled to the row that the address names.
  document.querySelector(":target")?.scrollIntoView();
}

/** The example of the page becomes what the form sends. */
function showPrograms(programs: readonly Example[]): void {
  for (const { language, code } of programs) {
    const element = document.querySelector(`.aside:has(.try-it) [data-language="${language}"] code`);
    if (element !== null) element.innerHTML = highlight(code, EXAMPLE_LANGUAGES[language].syntax);
  }
}

/** Adds to an element of the page. */
function addedTo(selector: string, content: ComponentChildren): ComponentChildren {
  const element = document.querySelector(selector);
  return element && createPortal(content, element);
}

/** The key is in the memory of the page, and of the tab if the person wants it. */
function useKey() {
  const [memory, setMemory] = useState<KeyMemory>(() => {
    const key = readStored("sessionStorage", KEY);
    return { key: key ?? "", isRemembered: key !== null };
  });
  function change({ key, isRemembered }: KeyMemory) {
    const isAllowed = writeStored("sessionStorage", KEY, isRemembered ? key : null);
    setMemory({ key, isRemembered: isRemembered && isAllowed });
  }
  return [memory, change] as const;
}

/** The note beside the button: why it sends nothing, or what it changes. */
const NOTE_ID = "try-it-note";

/** Sends requests of one operation from the page that describes it. */
function TryItForm({ data }: { readonly data: TryItData }) {
  const { operation } = data;
  const [memory, changeMemory] = useKey();
  const [values, setValues] = useState(() => initialValues(operation.fields));
  const { outcome, isRunning, retryIn, run, cancel, forget } = useSending(memory.key);
  const requestWith = (changed: Values) =>
    requestOf({ operation, values: changed, baseUrl: urlOf(BASE_PATH), key: memory.key });
  const obstacle = obstacleOf({ operation, values, key: memory.key });
  const cursor = outcome?.kind === "response" ? nextCursor(outcome.headers) : undefined;

  const consequence = operation.method === "GET" ? "" : `This changes data in ${data.environment}.`;

  useLayoutEffect(() => {
    // The programs contain a placeholder, because people share them.
    showPrograms(programsOf({ operation, values, baseUrl: data.baseUrl }));
  }, [values]);

  function submit(changed: Values) {
    if (obstacle?.field !== undefined) document.getElementById(inputIdOf(obstacle.field))?.focus();
    if (obstacle !== undefined || isRunning || retryIn > 0) return;
    setValues(changed);
    void run(requestWith(changed));
  }

  return (
    <form
      id={FORM_ID}
      novalidate
      onSubmit={(event) => {
        event.preventDefault();
        submit(values);
      }}
    >
      {addedTo(
        ".try-key",
        <KeyField
          environment={data.environment}
          memory={memory}
          onChange={(changed) => {
            if (changed.key !== memory.key) forget();
            changeMemory(changed);
          }}
        />,
      )}
      {operation.fields.map((field) => {
        const { name, anchor } = field;
        const onChange = (text: string) => {
          forget();
          setValues({ ...values, [name]: text });
        };
        const input = <FieldInput field={field} text={values[name] ?? ""} onChange={onChange} />;
        return addedTo(`#${CSS.escape(anchor)} > dd`, input);
      })}
      <div class="try-actions">
        <button
          type="submit"
          class="button primary"
          aria-disabled={obstacle !== undefined || isRunning || retryIn > 0}
          aria-describedby={NOTE_ID}
        >
          {retryIn > 0 ? `Send again in ${shortDuration(1_000 * retryIn)}` : "Send request"}
        </button>
        {isRunning && (
          <button type="button" class="button" onClick={cancel}>
            Cancel
          </button>
        )}
        {cursor !== undefined && !isRunning && (
          <button type="button" class="button" onClick={() => submit({ ...values, cursor })}>
            Next page
          </button>
        )}
        <span class="note" id={NOTE_ID}>
          {retryIn > 0 ? "Until then, this key gets 429." : (obstacle?.reason ?? consequence)}
        </span>
      </div>
      <Result outcome={outcome} isRunning={isRunning} headers={data.headers} />
    </form>
  );
}

/** One request at a time. After a 429, none with the same key until `Retry-After` is over: that would be a strike. */
function useSending(key: string) {
  const [outcome, setOutcome] = useState<CallOutcome>();
  const [running, setRunning] = useState<AbortController>();
  const [wait, setWait] = useState<{ readonly key: string; readonly until: number }>();
  const retryIn = useSecondsUntil(wait?.key === key ? wait.until : undefined);

  async function run(request: Parameters<typeof send>[0]) {
    const controller = new AbortController();
    setRunning(controller);
    setOutcome(undefined);
    const result = await send(request, controller.signal);
    setRunning(undefined);
    setOutcome(result);
    const until = result.kind === "response" ? retryAtOf(result) : undefined;
    if (until !== undefined) setWait({ key, until });
  }

  const isRunning = running !== undefined;
  // A response to another request than the form now has would mislead.
  const forget = () => setOutcome(undefined);
  return { outcome, isRunning, retryIn, run, forget, cancel: () => running?.abort() };
}

interface ResultProps extends Pick<TryItData, "headers"> {
  readonly outcome: CallOutcome | undefined;
  readonly isRunning: boolean;
}

function Result({ outcome, isRunning, headers }: ResultProps) {
  const element = useRef<HTMLDivElement>(null);
  useEffect(() => {
    if (outcome !== undefined) element.current?.scrollIntoView({ block: "nearest" });
  }, [outcome]);
  return (
    <div class="try-result" ref={element}>
      <span class="visually-hidden" role="status">
        {isRunning ? "Sending" : announcementOf(outcome)}
      </span>
      {isRunning && <p class="note">Waiting for the response …</p>}
      {outcome !== undefined && (
        <>
          <h3>Response</h3>
          <ResponseView outcome={outcome} headers={headers} />
        </>
      )}
    </div>
  );
}

function announcementOf(outcome: CallOutcome | undefined): string {
  if (outcome === undefined) return "";
  return outcome.kind === "response"
    ? `Response ${outcome.status} ${outcome.statusText}`
    : `Request ${outcome.kind}`;
}
