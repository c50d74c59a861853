import { loadOnce } from "../runtime/load-once.ts";
import type { ServerServices } from "./services.ts";

/**
 * Answers what other servers and commands ask. `onQuestions` calls a listener when there are questions, and returns a
 * function that removes it. The first question loads the code.
 */
export function answerWhenAsked(services: ServerServices, onQuestions: (listener: () => void) => () => void) {
  const load = loadOnce(async () => (await import("./answer-questions.ts")).answerQuestions(services));
  let answering = Promise.resolve();
  const remove = onQuestions(() => {
    // An outage of the database is in the log, and whoever asks waits no longer than for a server that stands still.
    answering = Promise.try(load)
      .then((answer) => answer())
      .catch(() => {});
  });
  return {
    async close() {
      remove();
      await answering;
    },
  };
}
