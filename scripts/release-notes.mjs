/**
 * Prints the section of a version in CHANGELOG.md: `node scripts/release-notes.mjs v0.2.0`. Each entry becomes a single line, because
 * GitHub shows the line breaks of release notes.
 */
import { readFileSync } from "node:fs";

function fail(message) {
  process.stderr.write(`release-notes: ${message}\n`);
  process.exit(1);
}

const [tag = ""] = process.argv.slice(2);
if (!tag.startsWith("v")) fail(`the tag must be "v" and a version, such as v0.2.0 (got ${JSON.stringify(tag)})`);
const version = tag.slice(1);
const sections = readFileSync(new URL("../CHANGELOG.md", import.meta.url), "utf8").split(/^## /m);
const section = sections.find((text) => text.startsWith(`${version}\n`));
if (section === undefined) fail(`CHANGELOG.md has no section "## ${version}"`);
const notes = section
  .slice(version.length)
  .replaceAll(/(?<=\S)\n +(?![-*] )/g, " ")
  .trim();
if (notes === "") fail(`the section "## ${version}" of CHANGELOG.md is empty`);
process.stdout.write(`${notes}\n`);
