import type uPlot from "uplot";
import type { PlotProps } from "../../src/console/components/plot-data.ts";

/** An element of a page, without a browser. */
class Element {
  readonly children: (Element | string)[] = [];
  readonly style: Record<string, string> = {};
  readonly tag: string;
  className = "";
  parent: Element | undefined;

  constructor(tag: string) {
    this.tag = tag;
    Object.defineProperty(this.style, "setProperty", {
      value: (name: string, value: string) => void (this.style[name] = value),
    });
  }

  append(...children: readonly (Element | string)[]): void {
    this.children.push(...children);
    for (const child of children) if (child instanceof Element) child.parent = this;
  }

  appendChild(child: Element): Element {
    this.append(child);
    return child;
  }

  remove(): void {
    const { children = [] } = this.parent ?? {};
    children.splice(children.indexOf(this), 1);
  }

  querySelectorAll(selector: string): Element[] {
    const elements = this.children.filter((child) => child instanceof Element);
    return elements.filter(({ className }) => className.split(" ").includes(selector.slice(1)));
  }

  querySelector(selector: string): Element | null {
    return this.querySelectorAll(selector)[0] ?? null;
  }

  /** `span.tone-error left=5px (■)`. */
  toString(): string {
    const style = Object.entries(this.style).map(([name, value]) => ` ${name}=${value}`);
    const name = [this.tag, ...this.className.split(" ").filter(Boolean)].join(".");
    return `${name}${style.join("")} (${this.children.join(" ")})`;
  }
}

/** What a plot needs of a browser, until the returned function is called. A pixel of the page is two of the canvas. */
export function fakeBrowser(): () => void {
  const globals = {
    devicePixelRatio: 2,
    document: { createElement: (tag: string) => new Element(tag) },
    getComputedStyle: ({ style }: Element) => ({ color: style["color"], fontFamily: "sans" }),
  };
  Object.assign(globalThis, globals);
  return () => {
    for (const name of Object.keys(globals)) Reflect.deleteProperty(globalThis, name);
  };
}

/** The left edge of a fake canvas, its upper one, its width and its height. */
const AREA = { left: 100, top: 10, width: 400, height: 40 };

/**
 * A plot whose canvas writes down what is drawn. A second is four pixels of the canvas, and two of the page; a letter
 * is ten pixels wide.
 */
export function fakePlot(own: object = {}) {
  const drawn: string[] = [];
  const ctx = new Proxy(
    { measureText: ({ length }: string) => ({ width: 10 * length }) },
    {
      get: (target, name) =>
        name === "measureText"
          ? target.measureText
          : (...values: unknown[]) => void drawn.push(`${String(name)} ${values.join(" ")}`.trim()),
      set: (_target, name, value) => drawn.push(`${String(name)} = ${value}`) > 0,
    },
  );
  const over = Object.assign(new Element("over"), {
    clientWidth: 200,
    isHere: true,
    matches: () => over.isHere,
  });
  const valToPos = (value: number, axis: string, isOnCanvas = false) =>
    axis === "y" ? 100 - value : isOnCanvas ? AREA.left + 4 * value : 2 * value;
  const plot: uPlot = Object({ ctx, over, bbox: AREA, valToPos, scales: {}, cursor: {}, width: 400, ...own });
  return { plot, over, drawn };
}

export const fakeElement = (size: object): HTMLElement => Object(Object.assign(new Element("area"), size));

export const colour = (value: string) => () => value;

/** Times from zero, ten seconds apart. */
export function plotOf(
  kind: PlotProps["kind"],
  all: Readonly<Record<string, readonly (number | null)[]>>,
): PlotProps {
  const [first = []] = Object.values(all);
  return {
    title: "Requests",
    kind,
    times: first.map((_, i) => 10 * i),
    series: Object.entries(all).map(([label, values]) => ({ label, tone: "series", symbol: "●", values })),
    axisValue: (value) => `${value}/s`,
    value: (value) => `${value} a second`,
    group: "test",
    pointUrl: () => "",
    noDataText: "before the start",
    emptyText: "none",
  };
}
