/**
 * Documents of Studio and the client library, which clients can name by the SHA-256 of their text instead of sending
 * them. An operator can allow app users no other documents.
 */
import { createHash } from "node:crypto";
import { GraphQLError } from "graphql";
import { type Caller, isPageCaller } from "../../rules/access.js";
import stored from "./persisted-documents.json" with { type: "json" };

const KNOWN_DOCUMENTS = new Map(Object.entries(stored));
const DOCUMENT_ID_PREFIX = "sha256:";

/** Fields of a request that name its document. */
export interface DocumentRequest {
  query?: unknown;
  /** `sha256:` and the hash in hexadecimal; ignored if there is a query. */
  documentId?: unknown;
}

const idOf = (query: string): string => DOCUMENT_ID_PREFIX + createHash("sha256").update(query).digest("hex");

/** Returns the text of the document, null if the request names none, or an error if the name is unknown. */
export function queryTextOf({ query, documentId }: DocumentRequest): string | GraphQLError | null {
  if (typeof query === "string" && query !== "") return query;
  if (documentId === undefined || documentId === null) return typeof query === "string" ? query : null;
  const text = typeof documentId === "string" ? KNOWN_DOCUMENTS.get(documentId) : undefined;
  return text ?? new GraphQLError('documentId must be "sha256:" followed by the hash of a registered document');
}

/** Returns the reason why the caller may not send the document; null if it may. */
export function errorIfNotPersisted(
  query: string,
  caller: Caller | null,
  mode: "any" | "persisted",
): GraphQLError | null {
  if (mode === "any" || !caller || !isPageCaller(caller) || KNOWN_DOCUMENTS.has(idOf(query))) return null;
  return new GraphQLError("app users can send only the documents of the service's client library");
}
