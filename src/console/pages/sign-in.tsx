import { useState } from "preact/hooks";
import { findSession, signIn } from "../admin-api.ts";
import { Form, TextField } from "../components/forms.tsx";
import { usePolled } from "../polling.ts";

/** `problem` is why the token of the URL did not work. */
export function SignInPage({ problem }: { readonly problem: string | undefined }) {
  const [token, setToken] = useState("");
  // Somebody may sign in in another tab.
  usePolled("session", findSession);
  return (
    <main class="sign-in">
      <h1>Sign in to Petstore</h1>
      <Form submit="Sign in" onSubmit={() => signIn(token)} problem={token === "" ? problem : undefined}>
        <TextField
          label="Admin token"
          hint={
            <>
              The server prints a URL with it when it starts. <code>petstore admin-url</code> prints it again.
            </>
          }
          type="password"
          autocomplete="current-password"
          required
          autofocus
          value={token}
          onInput={setToken}
        />
      </Form>
    </main>
  );
}
