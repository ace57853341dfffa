/**
 * Persisted GraphQL documents: those of Studio and the client library. A client can send the SHA-256 of a document's text in place of the
 * text. An operator can forbid app users to send other documents.
 */
import { createHash } from "node:crypto";
import { GraphQLError } from "graphql";
import { type Caller, isPageCaller } from "../../rules/access.js";
import { describeValue } from "../../rules/describe-value.js";
import stored from "./persisted-documents.json" with { type: "json" };

const PERSISTED_DOCUMENTS = new Map(Object.entries(stored));
const DOCUMENT_ID_PREFIX = "sha256:";

export interface GraphqlDocumentFields {
  query?: unknown;
  /** "sha256:" followed by the hash in hexadecimal. Ignored if `query` is present. */
  documentId?: unknown;
}

const computeDocumentId = (query: string): string =>
  DOCUMENT_ID_PREFIX + createHash("sha256").update(query).digest("hex");

/** Returns the text of the request's document; null if the request has neither `query` nor `documentId`; an error for an unknown ID. */
export function findQueryText({ query, documentId }: GraphqlDocumentFields): string | GraphQLError | null {
  if (typeof query === "string" && query !== "") return query;
  if (documentId === undefined || documentId === null) return typeof query === "string" ? query : null;
  const text = typeof documentId === "string" ? PERSISTED_DOCUMENTS.get(documentId) : undefined;
  return (
    text ??
    new GraphQLError(
      `documentId must be "sha256:" followed by the hash of a registered document (got ${describeValue(documentId)})`,
    )
  );
}

/** Returns an error if the caller may send only persisted documents and `query` is not one of them; otherwise null. */
export function findNotPersistedError(
  query: string,
  caller: Caller | null,
  mode: "any" | "persisted",
): GraphQLError | null {
  if (mode === "any" || !caller || !isPageCaller(caller) || PERSISTED_DOCUMENTS.has(computeDocumentId(query)))
    return null;
  return new GraphQLError(
    "app users can send only the GraphQL documents of the service's client library; use the client library, or ask the operator to set GRAPHQL_DOCUMENTS=any",
  );
}
