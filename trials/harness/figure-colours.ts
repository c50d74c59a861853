import { readFileSync } from "node:fs";

const TOKENS = readFileSync(new URL("../../src/pages/shared.css", import.meta.url), "utf8");

/** Adds a style to an SVG for where it is shown alone: the colours of the pages, light and dark, that it names. */
export function withFigureColours(svg: string): string {
  const names = new Set(Array.from(svg.matchAll(/var\((--[a-z-]+)\)/g), ([, name = ""]) => name));
  const colours = Array.from(names, (name) => {
    const [colour] = new RegExp(`${name}: .*;$`, "m").exec(TOKENS) ?? [];
    if (colour === undefined) throw new Error(`shared.css has no ${name}`);
    return `  ${colour}\n`;
  });
  const style = `<style>\nsvg {\n  color-scheme: light dark;\n${colours.join("")}}\n</style>`;
  return svg.replace(/(?<=^<svg [^>]*>)/, `\n${style}`);
}
