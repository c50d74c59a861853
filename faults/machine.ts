import { describeMachine } from "../bench/machine.ts";
import { POSTGRESQL, provide, VALKEY } from "../test/engines/programs.ts";

/** Where and on what figures were measured, in words. */
export function describeGround(): string[] {
  const { cpu, cores, memoryGb, kernel, architecture, load } = describeMachine();
  return [
    `${cores} cores of ${cpu} (${architecture}), ${memoryGb} GB, Linux ${kernel}; load average at the end ${load}`,
    `Bun ${Bun.version}, ${versionOf(`${provide(POSTGRESQL)}/postgres`)}, ${versionOf(valkeyProgram())}`,
    `measured on ${new Date().toISOString().slice(0, 10)}`,
  ];
}

function valkeyProgram(): string {
  return Bun.which("valkey-server", { PATH: provide(VALKEY) }) ?? `${provide(VALKEY)}/redis-server`;
}

/** `postgres (PostgreSQL) 15.7 (Debian …)`, `Redis server v=7.0.15 sha=…`. */
function versionOf(program: string): string {
  const text = Bun.spawnSync([program, "--version"]).stdout.toString();
  const [, name = program, version = ""] = /(PostgreSQL|Redis|Valkey)\D*(\d[\d.]*)/.exec(text) ?? [];
  return `${name} ${version}`;
}
