/**
 * The documents that Studio and the client library send, known to the service by the SHA-256 of their text. A client may name one instead of
 * sending it, and an operator may have app users send no others. Executes nothing.
 */
import { createHash } from "node:crypto";
import { GraphQLError } from "graphql";
import { type Caller, isVisitor } from "../../rules/access.js";
import stored from "./persisted-documents.json" with { type: "json" };

const KNOWN = new Map(Object.entries(stored));
const PREFIX = "sha256:";

/** What a request says of its document. */
export interface Named {
  query?: unknown;
  /** `sha256:` and the hash in hexadecimal; not heeded beside a query. */
  documentId?: unknown;
}

const idOf = (query: string): string => PREFIX + createHash("sha256").update(query).digest("hex");

/** The text that is meant; null where none is said, or why there is none of that name. */
export function textOf({ query, documentId }: Named): string | GraphQLError | null {
  if (typeof query === "string" && query !== "") return query;
  if (documentId === undefined || documentId === null) return typeof query === "string" ? query : null;
  const text = typeof documentId === "string" ? KNOWN.get(documentId) : undefined;
  return text ?? new GraphQLError("documentId must be sha256: and the hash of a document that this service knows");
}

/** Why the caller may not send that document; null where it may. */
export function refusalOf(query: string, caller: Caller | null, mode: "any" | "persisted"): GraphQLError | null {
  if (mode === "any" || !caller || !isVisitor(caller) || KNOWN.has(idOf(query))) return null;
  return new GraphQLError("app users may send no documents but those of the service's own client library");
}
