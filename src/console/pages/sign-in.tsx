import { useState } from "preact/hooks";
import { Field, Problem, useAction } from "../components/form.tsx";
import { signIn } from "../session.ts";

/** `problem` is why the token of the URL did not work. */
export function SignIn({ problem: urlProblem }: { readonly problem: string | undefined }) {
  const [token, setToken] = useState("");
  const { isRunning, problem, run } = useAction();
  return (
    <main class="sign-in">
      <h1>Sign in to Petstore</h1>
      <form
        class="form"
        onSubmit={(event) => {
          event.preventDefault();
          void run(() => signIn(token));
        }}
      >
        <Field
          label="Admin token"
          hint={
            <>
              The server prints a URL with it when it starts. <code>petstore admin-url</code> prints it again.
            </>
          }
        >
          {(attributes) => (
            <input
              {...attributes}
              type="password"
              autocomplete="current-password"
              required
              autofocus
              value={token}
              onInput={(event) => setToken(event.currentTarget.value)}
            />
          )}
        </Field>
        <Problem text={problem ?? (token === "" ? urlProblem : undefined)} />
        <div class="actions">
          <button type="submit" class="primary" disabled={isRunning}>
            Sign in
          </button>
        </div>
      </form>
    </main>
  );
}
