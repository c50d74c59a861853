/**
 * Loaded before the program, so that its clocks start at another time or run faster: what takes 30 seconds, or happens
 * in 2030, is recorded within one.
 */
const [start = 0, offsetMs = 0, speed = 1] = (process.env.RECORDED_CLOCK ?? "").split(" ").map(Number);

const RealDate = Date;
const now = () => start + offsetMs + (RealDate.now() - start) * speed;

globalThis.Date = class extends RealDate {
  constructor(value?: number | string | Date) {
    super(value ?? now());
  }
  static override now = () => Math.floor(now());
} as DateConstructor;

const elapsed = performance.now.bind(performance);
performance.now = () => elapsed() * speed;

const { setTimeout: realTimeout, setInterval: realInterval } = globalThis;
globalThis.setTimeout = Object.assign(
  (callback: () => void, ms = 0) => realTimeout(callback, ms / speed),
  realTimeout,
);
globalThis.setInterval = Object.assign(
  (callback: () => void, ms = 0) => realInterval(callback, ms / speed),
  realInterval,
);
