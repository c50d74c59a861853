/** Puts a form into each section that can send requests; see `TryItData`. */
export function startTryIt(): void {}
