import { useId, useState } from "preact/hooks";
import { KEY_PREFIX } from "../../domain/secrets.ts";
import { randomKey } from "../../client/retry.ts";
import type { TryItData, TryItField } from "../page-data.ts";
import { cleanKey, keyProblem, fieldProblem } from "./request.ts";

/** The inputs are in the lists of the page, and belong to the form next to them. */
export const FORM_ID = "try-it";

/** The API key that requests carry: in the memory of the page, and of the tab if it is remembered. */
export interface KeyMemory {
  readonly key: string;
  readonly isRemembered: boolean;
}

interface KeyFieldProps {
  readonly environment: TryItData["environment"];
  readonly memory: KeyMemory;
  readonly onChange: (memory: KeyMemory) => void;
}

/** The API key. A password field, so that it is not on the screen unless asked for. */
export function KeyField({ environment, memory, onChange }: KeyFieldProps) {
  const id = useId();
  const [isShown, setShown] = useState(false);
  const { key, isRemembered } = memory;
  const problem = keyProblem(key, environment);
  return (
    <>
      <label for={id}>API key</label>
      <div class="try-input">
        <input
          id={id}
          form={FORM_ID}
          {...(isShown ? ({ type: "text" } as const) : ({ type: "password" } as const))}
          value={key}
          placeholder={`${KEY_PREFIX[environment]}…`}
          autocomplete="off"
          autocapitalize="off"
          spellcheck={false}
          aria-describedby={`${id}-hint`}
          aria-invalid={problem !== undefined}
          onInput={(event) => onChange({ key: cleanKey(event.currentTarget.value), isRemembered })}
        />
        <button type="button" class="button" aria-pressed={isShown} onClick={() => setShown(!isShown)}>
          {isShown ? "Hide" : "Show"}
        </button>
      </div>
      <div class="note" id={`${id}-hint`}>
        {problem === undefined ? (
          "It stays in this page and is sent only to this server."
        ) : (
          <span class="try-problem">{problem}</span>
        )}
      </div>
      <label class="try-check">
        <input
          type="checkbox"
          checked={isRemembered}
          onChange={(event) => onChange({ key, isRemembered: event.currentTarget.checked })}
        />
        Remember it on other pages until this tab is closed
      </label>
    </>
  );
}

/** The id of the input of a field. */
export function inputIdOf({ anchor }: TryItField): string {
  return `${anchor}-input`;
}

interface FieldInputProps {
  readonly field: TryItField;
  readonly text: string;
  readonly onChange: (text: string) => void;
}

/** The input of a row, and below it what the API will reject. */
export function FieldInput({ field, text, onChange }: FieldInputProps) {
  const { name, anchor, values, isRequired, default: assumed } = field;
  const problem = fieldProblem(field, text);
  const attributes = {
    id: inputIdOf(field),
    form: FORM_ID,
    value: text,
    "aria-label": name,
    "aria-describedby": `${anchor}-description ${anchor}-problem`,
    "aria-invalid": problem !== undefined,
    "aria-required": isRequired,
  };
  const placeholder = assumed === undefined ? "not sent" : `not sent: ${assumed}`;
  return (
    <div class="try-value">
      {values === undefined ? (
        <div class="try-input">
          <input
            {...attributes}
            type="text"
            placeholder={isRequired ? "" : placeholder}
            autocomplete="off"
            autocapitalize="off"
            spellcheck={false}
            onInput={(event) => onChange(event.currentTarget.value)}
          />
          {name === "Idempotency-Key" && (
            <button
              type="button"
              class="button"
              aria-label="Generate an Idempotency-Key"
              onClick={() => onChange(randomKey())}
            >
              Generate
            </button>
          )}
        </div>
      ) : (
        <select {...attributes} onChange={(event) => onChange(event.currentTarget.value)}>
          {(!isRequired || text === "") && <option value="">not sent</option>}
          {values.map((value) => (
            <option key={value}>{value}</option>
          ))}
        </select>
      )}
      <div class="try-problem" id={`${anchor}-problem`}>
        {problem !== undefined && `${name} ${problem}.`}
      </div>
    </div>
  );
}
