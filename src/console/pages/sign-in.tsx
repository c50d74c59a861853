import { useState } from "preact/hooks";
import { goToProvider, loadSession, setSession, signIn } from "../session.ts";
import { consoleState } from "../state.ts";
import { Brand, ENVIRONMENT } from "../components/layout.tsx";
import { Form } from "../components/forms.tsx";
import { TextField } from "../components/fields.tsx";
import { usePolling } from "../polling.ts";

export function SignInPage() {
  const { provider, urlProblem } = consoleState;
  // Somebody may sign in in another tab.
  usePolling("session", loadSession, { onData: setSession });
  return (
    <main class="sign-in">
      <div class="card">
        <div class="header" data-environment={ENVIRONMENT}>
          <span class="brand">
            <Brand />
          </span>
        </div>
        <section>
          <h1>Sign in to Petstore</h1>
          {provider === undefined ? (
            <TokenForm problem={urlProblem} />
          ) : (
            <>
              <Form submitText={`Sign in with ${provider}`} onSubmit={goToProvider} problem={urlProblem} />
              <details>
                <summary>Use a token instead</summary>
                <TokenForm />
              </details>
            </>
          )}
        </section>
      </div>
    </main>
  );
}

function TokenForm({ problem }: { readonly problem?: string | undefined }) {
  const [token, setToken] = useState("");
  return (
    <Form
      submitText="Sign in"
      onSubmit={() => signIn({ token: token.trim() })}
      problem={token === "" ? problem : undefined}
    >
      <TextField
        label="Your token"
        hint={
          <>
            What you got as an operator. Without one, <code>petstore admin-url</code> on the server's machine
            prints a URL that signs in once.
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
  );
}
