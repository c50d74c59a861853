import { useId, useState } from "preact/hooks";
import { CodeBlock } from "./code.tsx";
import { type ApiRequest, curlText, httpText } from "./request.ts";

const FORMS = {
  HTTP: { textOf: httpText, syntax: "http" },
  curl: { textOf: curlText, syntax: "sh" },
} as const;
type Form = keyof typeof FORMS;

/** The request as text, while it is edited: as it is sent, or for a shell. */
export function RequestView({ request }: { readonly request: ApiRequest }) {
  const [form, setForm] = useState<Form>("HTTP");
  const name = useId();
  const { textOf, syntax } = FORMS[form];
  const choice = (value: Form) => (
    <label key={value}>
      <input type="radio" name={name} checked={value === form} onChange={() => setForm(value)} />
      <span>{value}</span>
    </label>
  );
  return (
    <div class="try-request">
      <div class="try-bar">
        <h3>Request as sent</h3>
        <fieldset class="try-forms">
          <legend class="visually-hidden">Show the request as</legend>
          {choice("HTTP")}
          {choice("curl")}
        </fieldset>
      </div>
      <CodeBlock label="Request as sent" code={textOf(request)} syntax={syntax} />
      <p class="try-hint">
        {form === "curl" ? (
          <>
            Set the variable <code>KEY</code> to your API key first.
          </>
        ) : (
          "Your browser adds headers of its own. The key is masked here, not in the request."
        )}
      </p>
    </div>
  );
}
