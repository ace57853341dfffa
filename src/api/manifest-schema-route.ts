/**
 * GET `/schemas/manifest.json`: the JSON Schema of manifests (documents with all definitions of an app), for editors
 * and tools. Needs no credential.
 */
import type { FastifyInstance } from "fastify";
import { createManifestJsonSchema } from "../rules/manifest.js";

const SCHEMA_PATH = "/schemas/manifest.json";

export function registerManifestSchema(app: FastifyInstance, baseUrl: string): void {
  let text: string | null = null;
  app.get(SCHEMA_PATH, async (_request, reply) => {
    text ??= JSON.stringify(createManifestJsonSchema(`${baseUrl}${SCHEMA_PATH}`));
    return reply
      .type("application/schema+json; charset=utf-8")
      .header("Cache-Control", "no-cache")
      .header("Access-Control-Allow-Origin", "*")
      .send(text);
  });
}
