import { FailureReporter } from "../runtime/failure-reporter.ts";
import { loadOnce } from "../runtime/load-once.ts";
import type { ServerServices } from "./services.ts";

/**
 * Answers what other servers and commands ask. `onQuestions` calls a listener when there are questions, and returns a
 * function that removes it. The first question loads the code.
 */
export function answerWhenAsked(services: ServerServices, onQuestions: (listener: () => void) => () => void) {
  const load = loadOnce(async () => (await import("./answer-questions.ts")).answerQuestions(services));
  const attempts = new FailureReporter((error) => services.log.event("server.cannot-answer", { error }));
  let answering = Promise.resolve();
  const remove = onQuestions(() => {
    answering = Promise.try(load)
      .then((answer) => answer())
      .then(
        () => attempts.succeeded(),
        (error: unknown) => attempts.failed(error),
      );
  });
  return {
    async close() {
      remove();
      await answering;
    },
  };
}
