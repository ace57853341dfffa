/**
 * Finds the lists in code, schemas and docs that name all kinds of triggers. Each list must state which of these kinds the product's
 * specification defines.
 */
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { expect } from "chai";
import { loadSchema } from "../src/api/graphql/schema.js";
import { createOpenapiDocument } from "../src/api/openapi/document.js";
import { ROUTES } from "../src/api/rest/routes.js";
import { createManifestJsonSchema } from "../src/rules/manifest.js";
import { TRIGGER_TYPES } from "../src/rules/trigger-input.js";

const ROOTS = ["src", "docs", "schema", "examples", "README.md"];
const TEXT_FILES = /\.(?:tsx?|md|graphql|json)$/;
/** Matches files with generated types of GraphQL operations. Their lists come from the schema, which this test checks. */
const GENERATED = /\/documents\.(?:ts|json)$/;
/** Maximum number of lines of a list in code or docs. */
const LIST_LINES = 8;
/** Maximum number of lines of a list in a schema. It is higher, because a schema also contains descriptions. */
const SCHEMA_LINES = 12;
/** Number of lines before and after a list in which the test searches for the word "specification". */
const AROUND_LINES = 6;
const NAMES_SPECIFICATION = /specification|SPECIFIED/i;

const linesOf = (file: string): number => (/\.(?:graphql|json)$/.test(file) ? SCHEMA_LINES : LIST_LINES);

const filesIn = (root: string): string[] =>
  root.includes(".")
    ? [root]
    : readdirSync(root, { recursive: true, withFileTypes: true })
        .filter((entry) => entry.isFile())
        .map(({ parentPath, name }) => join(parentPath, name));

const KINDS = TRIGGER_TYPES.map((kind) => new RegExp(`(?<![\\w-])${kind}(?![\\w-])`));
const namesAllKinds = (text: string): boolean => KINDS.every((kind) => kind.test(text));

/** Returns the number of lists. `silent` has the number of the first line of each list that does not mention the specification. */
function findListsWithoutSpecification(text: string, most = SCHEMA_LINES): { lists: number; silent: number[] } {
  if (!namesAllKinds(text)) return { lists: 0, silent: [] };
  // Removes empty lines, but keeps the line numbers of the whole text.
  const lines = text.split("\n").flatMap((line, at) => (line.trim() === "" ? [] : [{ line, number: at + 1 }]));
  const between = (from: number, to: number): string =>
    lines
      .slice(Math.max(0, from), to)
      .map(({ line }) => line)
      .join("\n");
  let lists = 0;
  const silent: number[] = [];
  for (let at = 0; at < lines.length; at += 1) {
    if (!namesAllKinds(between(at, at + most))) continue;
    lists += 1;
    if (!NAMES_SPECIFICATION.test(between(at - AROUND_LINES, at + most + AROUND_LINES))) silent.push(lines[at]!.number);
    at += most;
  }
  return { lists, silent };
}

describe("lists of the kinds of triggers", () => {
  it("say which kinds are those of the specification, in code, documents and schemas", () => {
    const found = ROOTS.flatMap(filesIn)
      .filter((file) => TEXT_FILES.test(file) && !GENERATED.test(file))
      .map((file) => ({ file, ...findListsWithoutSpecification(readFileSync(file, "utf8"), linesOf(file)) }))
      .filter(({ lists }) => lists > 0);
    expect(found.map(({ file }) => file)).to.include.members([
      "src/errors.ts",
      "src/web/studio/actions/trigger-fields.tsx",
      "docs/reference/triggers.md",
      "schema/schema.graphql",
    ]);
    expect(found.filter(({ silent }) => silent.length > 0)).to.deep.equal([]);
  });

  it("say it in the manifest's JSON Schema and in the OpenAPI document", async () => {
    const documents = [
      createManifestJsonSchema("https://schemas.example/manifest"),
      await createOpenapiDocument(await loadSchema(), ROUTES, ""),
    ];
    for (const document of documents) {
      const { lists, silent } = findListsWithoutSpecification(JSON.stringify(document, null, 2));
      expect(lists).to.be.at.least(1);
      expect(silent).to.deep.equal([]);
    }
  });
});
