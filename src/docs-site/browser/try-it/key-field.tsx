import { useId, useState } from "preact/hooks";
import type { TryItData } from "../../try-it-data.ts";
import { CodeBlock } from "./code.tsx";
import { cleanKey, keyProblem, type KeyMemory } from "./key.ts";

interface KeyFieldProps {
  readonly data: TryItData;
  readonly memory: KeyMemory;
  readonly onChange: (memory: KeyMemory) => void;
}

/** The API key. A password field, so that it is not on the screen unless asked for. */
export function KeyField({ data, memory, onChange }: KeyFieldProps) {
  const id = useId();
  const [isShown, setShown] = useState(false);
  const { key, isRemembered } = memory;
  const problem = keyProblem(key, data);
  return (
    <div class="try-key">
      <label for={id}>API key</label>
      <div class="try-input">
        <input
          id={id}
          {...(isShown ? ({ type: "text" } as const) : ({ type: "password" } as const))}
          value={key}
          placeholder={`${data.keyPrefix}…`}
          autocomplete="off"
          autocapitalize="off"
          spellcheck={false}
          aria-describedby={`${id}-hint`}
          aria-invalid={problem !== undefined}
          onInput={(event) => onChange({ key: cleanKey(event.currentTarget.value), isRemembered })}
        />
        <button type="button" aria-pressed={isShown} onClick={() => setShown(!isShown)}>
          {isShown ? "Hide" : "Show"}
        </button>
      </div>
      <div class="try-hint" id={`${id}-hint`}>
        {problem === undefined ? (
          "It stays in the memory of this page and is sent to this server alone."
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
        Remember it on the other pages, until this tab is closed
      </label>
      {key === "" && <KeyHelp data={data} />}
    </div>
  );
}

function KeyHelp({
  data: { environment, keyPrefix, command, authenticationPath },
}: {
  readonly data: TryItData;
}) {
  const flag = environment === "production" ? "" : ` --env ${environment}`;
  return (
    <details class="try-help">
      <summary>Get a key</summary>
      <p>
        Ask whoever runs this server. A key of {environment} begins with <code>{keyPrefix}</code>; see{" "}
        <a href={authenticationPath}>Authentication</a>.
      </p>
      <p>
        You run it yourself? Its first start printed a key in the terminal, or the name of a file that has the
        key: <code>{environment}-first-key</code> in the data directory. This command creates another one,
        also while the server runs:
      </p>
      <CodeBlock
        label="Command"
        title="Shell"
        code={`${command} keys create --name "my key" --plan free${flag}`}
        syntax="sh"
      />
    </details>
  );
}
