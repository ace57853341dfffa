/** Returns the service's version from package.json. */
import { readFileSync } from "node:fs";

export function readServiceVersion(): string {
  const text = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  return (JSON.parse(text) as { version: string }).version;
}
