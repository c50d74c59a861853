/** petstore backup and petstore restore. */
import { cpSync, existsSync, readdirSync, rmSync } from "node:fs";
import { join } from "node:path";
import { temporaryFolder } from "../harness/cleanup.ts";
import { runPetstore } from "../harness/petstore.ts";
import { readBackup } from "../src/archive/backup.ts";
import type { KilledCommand } from "./killed-commands.ts";
import { auditEntriesIn, type Fixture, MORE_PETS, petsIn } from "./killed-fixture.ts";

export function backupCommand({ data, contents }: Fixture): KilledCommand {
  const pets = contents.tables["pets"]?.rows;
  return {
    name: "backup",
    async prepare() {
      const directory = temporaryFolder("killed-backup");
      const check = async () => {
        const names = readdirSync(directory).filter((name) => !name.startsWith("."));
        const problems: string[] = [];
        for (const name of names) {
          await readBackup(join(directory, name)).catch((error: unknown) => problems.push(String(error)));
          if (petsIn(join(directory, name, "production.db")) !== pets) problems.push("a backup lacks pets");
        }
        return { problems, count: names.length };
      };
      return {
        argv: ["backup", directory, "--data", data],
        checkAfterKill: async () => (await check()).problems,
        async checkAtEnd() {
          const { problems, count } = await check();
          const left = readdirSync(directory).filter((name) => name.endsWith(".partial"));
          if (left.length > 0) problems.push("something partial is left");
          if (count === 0) problems.push("there is no backup");
          return problems;
        },
        remove: async () => rmSync(directory, { recursive: true }),
      };
    },
  };
}

export function restoreCommand({ backup, laterData, contents }: Fixture): KilledCommand {
  const pets = contents.tables["pets"]?.rows ?? 0;
  return {
    name: "restore",
    async prepare() {
      const data = join(temporaryFolder("killed-restore"), "data");
      cpSync(laterData, data, { recursive: true });
      const store = join(data, "production.db");
      return {
        argv: ["restore", backup, "--replace", "--data", data],
        async checkAfterKill() {
          const { code, out, err } = await runPetstore("pets", "list", "--json", "--data", data);
          if (err.includes("was interrupted; run the same petstore restore command again")) return [];
          if (code !== 0) return [`pets list fails: ${err}`];
          if (JSON.parse(out).length === 0) return ["a command sees an empty store"];
          return existsSync(store) && [pets, pets + MORE_PETS].includes(petsIn(store))
            ? []
            : ["pets are missing"];
        },
        async checkAtEnd() {
          const problems =
            petsIn(store) === pets ? [] : ["the restored database has other pets than the backup"];
          if (auditEntriesIn(store) !== Number(contents.tables["audit"]?.rows) + 1)
            problems.push("the restored database has not one audit entry of the restore");
          const replaced = readdirSync(data).filter((name) => name.startsWith("production-replaced-"));
          const kept = replaced.some((name) => {
            const path = join(data, name, "production.db");
            return existsSync(path) && petsIn(path) === pets + MORE_PETS;
          });
          if (!kept) problems.push("the replaced database is lost");
          if (existsSync(join(data, "production-restore"))) problems.push("the staged restore is left");
          return problems;
        },
        remove: async () => rmSync(data, { recursive: true }),
      };
    },
  };
}
