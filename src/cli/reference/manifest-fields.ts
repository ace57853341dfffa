/** Builds the reference page of the fields of a manifest (the document with all definitions of an app) from the manifest's schema. */
import { createManifestJsonSchema } from "../../rules/manifest.js";
import { buildReferencePage, formatInlineCode, formatMarkdownTable } from "./tables.js";

interface Schema {
  type?: string | string[];
  enum?: unknown[];
  const?: unknown;
  description?: string;
  properties?: Record<string, Schema>;
  items?: Schema;
  anyOf?: Schema[];
  required?: string[];
}

function formatType(schema: Schema): string {
  if (schema.const !== undefined) return JSON.stringify(schema.const);
  if (schema.enum) return schema.enum.map((allowed) => JSON.stringify(allowed)).join(" or ");
  if (schema.anyOf) return schema.anyOf.map(formatType).join(" or ");
  if (schema.items) return `array of ${formatType(schema.items)}`;
  return [schema.type ?? "any value"].flat().join(" or ");
}

/** Returns the first schema of an object inside the arrays and unions of a schema; null if there is none. */
function findObjectSchema(schema: Schema): Schema | null {
  if (schema.properties) return schema;
  return (
    [schema.items ?? [], schema.anyOf ?? []]
      .flat()
      .map(findObjectSchema)
      .find((shape) => shape !== null) ?? null
  );
}

function buildFieldRows(schema: Schema, path: string): string[][] {
  const object = findObjectSchema(schema);
  return Object.entries(object?.properties ?? {}).flatMap(([name, field]) => {
    const fieldPath = path === "" ? name : `${path}.${name}`;
    const isList = field.items !== undefined || field.anyOf?.some(({ items }) => items !== undefined);
    const requiredText = object!.required?.includes(name) ? "yes" : "";
    return [
      [formatInlineCode(fieldPath), formatType(field), requiredText, field.description ?? ""],
      ...buildFieldRows(field, isList ? `${fieldPath}[]` : fieldPath),
    ];
  });
}

export function buildManifestFieldsPage(): string {
  const schema = createManifestJsonSchema("http://127.0.0.1:4000/schemas/manifest.json") as Schema;
  const lead =
    "This page is for authors and tools that write a manifest. [Keep an app's definitions as one document](manifest.md) explains how to use a manifest. The JSON Schema at `/schemas/manifest.json` describes the same fields.";
  return buildReferencePage("Fields of the manifest", lead, "its schema", [
    formatMarkdownTable(["field", "type", "required", "meaning"], buildFieldRows(schema, "")),
  ]);
}
