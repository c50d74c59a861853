let pending: Promise<void> | undefined;

/** The next turn of the event loop; everybody who waits for the same one gets the same promise. */
export function nextTurn(): Promise<void> {
  pending ??= new Promise((resolve) => {
    setImmediate(() => {
      pending = undefined;
      resolve();
    });
  });
  return pending;
}
