const NAMES = [
  "Rex",
  "Mia",
  "Balu",
  "Luna",
  "Fips",
  "Nala",
  "Oskar",
  "Cleo",
  "Bruno",
  "Wilma",
  "Zoë",
  "李小龙",
  "قمر",
];
const KINDS = ["beagle", "tabby", "parrot", "rabbit", "tortoise", "hamster", "goldfish"];

/** The body of a request that creates a pet. Every ninth pet has no status. */
export function samplePet(number: number): string {
  const name = NAMES[number % NAMES.length];
  const kind = KINDS[number % KINDS.length];
  const pet = { name: `${name} the ${kind}`, categoryId: 1 + (number % KINDS.length) };
  return JSON.stringify(number % 9 === 0 ? pet : { ...pet, status: "available" });
}
