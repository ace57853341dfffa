/** The service's version, as package.json says. */
import { readFileSync } from "node:fs";

export function serviceVersion(): string {
  const text = readFileSync(new URL("../../package.json", import.meta.url), "utf8");
  return (JSON.parse(text) as { version: string }).version;
}
