export const ENVIRONMENTS = ["production", "staging"] as const;
export type Environment = (typeof ENVIRONMENTS)[number];

export function otherEnvironment(environment: Environment): Environment {
  return environment === "production" ? "staging" : "production";
}
