/**
 * The standard streams. Loading the code of streams takes 13 ms, so nothing asks for one of these before it has
 * something to write.
 */
export function standardOutput(): NodeJS.WriteStream {
  return listenedTo(process.stdout);
}

export function standardError(): NodeJS.WriteStream {
  return listenedTo(process.stderr);
}

/** The callback of a write receives an error too. Without a listener it would end the process with a stack. */
function listenedTo(stream: NodeJS.WriteStream): NodeJS.WriteStream {
  return stream.listenerCount("error") === 0 ? stream.on("error", () => {}) : stream;
}
