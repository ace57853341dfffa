/**
 * Checks GraphQL documents from HTTP requests and websockets: size, syntax, schema, cost and variables. Checks the documents of different
 * senders in turns. Caches accepted documents. Executes nothing.
 */
import { createHash } from "node:crypto";
import { type DocumentNode, GraphQLError, type GraphQLSchema, parse, specifiedRules, validate } from "graphql";
import { LRUCache } from "lru-cache";
import { collectYoungGarbage } from "../../garbage-collection.js";
import { IMMEDIATELY_PARSED_BODY_MAX_BYTES, JSON_MAX_DEPTH } from "../../limits.js";
import { nestsDeeperThan } from "../../rules/describe-value.js";
import { createFairTaskQueue, type FairTaskQueue } from "../fair-task-queue.js";
import { createGraphqlCostEstimator, type GraphqlVariables } from "./document-cost.js";
import { checkDocumentLimits } from "./document-form.js";
import { findVariablesError } from "./variables.js";

/** Maximum number of tokens in a document. A hand-written document has some hundreds. */
const DOCUMENT_MAX_TOKENS = 5_000;
const VALIDATION_ERRORS_MAX = 20;
/** Maximum depth of variables, so that recursive checks of deeper values do not overflow the call stack. */
const VARIABLES_MAX_DEPTH = 2 * JSON_MAX_DEPTH;
/** Maximum total length of all cached documents. A parsed document uses about fifty times the memory of its text. */
const CACHED_CHARACTERS_MAX = 500_000;
/** Number of parsed characters after which this file runs V8's garbage collector. By then, nearly all parsed nodes are garbage. */
const CHARACTERS_PER_GARBAGE_COLLECTION = 128 * 1024;
/**
 * After a check, the sender must pause in proportion to the check's duration. At most this many milliseconds count. For a request larger
 * than IMMEDIATELY_PARSED_BODY_MAX_BYTES, the maximum grows with the size.
 */
const COUNTED_CHECK_MAX_MS = 6;
/**
 * An operation that selects at most this many values is cheap: its sender need not pause for the execution. If its document is cached and
 * the request is small, it does not wait for its sender's turn either.
 */
const LIGHT_QUERY_COST_MAX = 1_000;
/** Estimated time to execute one selected value. An introspection with 30,000 values took about 50 ms (measured). */
const EXECUTION_MS_PER_VALUE = 1 / 600;

export interface GraphqlRequest {
  query: string;
  operationName?: string | null | undefined;
  variables?: GraphqlVariables;
}

export type GraphqlDocumentCheckResult = DocumentNode | readonly GraphQLError[];

export interface GraphqlDocumentChecker {
  /** Checks a document immediately, without waiting for the sender's turn. */
  check(request: GraphqlRequest): GraphqlDocumentCheckResult;
  /**
   * Checks a document when it is the sender's turn; immediately if the document is cached and cheap and the request is small.
   * @param bytes size of the request
   * @throws RATE_LIMIT_EXCEEDED if too many requests of this sender wait
   */
  checkInTurn(sender: string, bytes: number, request: GraphqlRequest): Promise<GraphqlDocumentCheckResult>;
  /** Returns a cached document by the SHA-256 of its text, in hexadecimal; undefined if it is not cached. */
  findCachedDocument(hash: string): DocumentNode | undefined;
}

const hashDocument = (query: string): string => createHash("sha256").update(query).digest("hex");

/**
 * Returns the errors of a failed parse. A stack overflow in graphql-js means that the document is nested too deeply.
 * @throws errors that are not about the document
 */
function toParseErrors(error: unknown): readonly GraphQLError[] {
  if (error instanceof GraphQLError) return [error];
  if (error instanceof RangeError)
    return [new GraphQLError("the GraphQL document is nested too deeply; send fewer levels of fields and values")];
  throw error;
}

export function createGraphqlDocumentChecker(
  schema: GraphQLSchema,
  taskQueue: FairTaskQueue = createFairTaskQueue(),
): GraphqlDocumentChecker {
  const computeCost = createGraphqlCostEstimator(schema);
  const checkedDocuments = new LRUCache<string, DocumentNode>({ maxSize: CACHED_CHARACTERS_MAX });

  let charactersSinceCollection = 0;

  function parseDocument(query: string): GraphqlDocumentCheckResult {
    charactersSinceCollection += query.length;
    if (charactersSinceCollection > CHARACTERS_PER_GARBAGE_COLLECTION) {
      charactersSinceCollection = query.length;
      collectYoungGarbage();
    }
    try {
      const document = parse(query, { maxTokens: DOCUMENT_MAX_TOKENS });
      checkDocumentLimits(document);
      const faults = validate(schema, document, specifiedRules, { maxErrors: VALIDATION_ERRORS_MAX });
      return faults.length > 0 ? faults : document;
    } catch (error) {
      return toParseErrors(error);
    }
  }

  function checkRequest(
    { query, operationName, variables }: GraphqlRequest,
    hash: string,
  ): { result: GraphqlDocumentCheckResult; cost: number } {
    const createRejection = (...errors: GraphQLError[]) => ({ result: errors, cost: 0 });
    if (nestsDeeperThan(variables, VARIABLES_MAX_DEPTH)) {
      return createRejection(
        new GraphQLError("the GraphQL variables are nested too deeply; send fewer levels of objects and lists"),
      );
    }
    const cachedDocument = checkedDocuments.get(hash);
    const document = cachedDocument ?? parseDocument(query);
    if (!("kind" in document)) return createRejection(...document);
    const cost = computeCost(document, operationName, variables);
    if (typeof cost !== "number") return createRejection(cost);
    const fault = findVariablesError(schema, document, operationName, variables);
    if (fault) return createRejection(fault);
    // Only accepted documents are cached, so that rejected ones do not displace them.
    if (!cachedDocument) checkedDocuments.set(hash, document, { size: Math.max(1, query.length) });
    return { result: document, cost };
  }

  return {
    check: (request) => checkRequest(request, hashDocument(request.query)).result,

    async checkInTurn(sender, bytes, request) {
      const hash = hashDocument(request.query);
      const isCheckedImmediately = checkedDocuments.has(hash) && bytes <= IMMEDIATELY_PARSED_BODY_MAX_BYTES;
      const work = () => checkRequest(request, hash);
      const countedMaxMs = COUNTED_CHECK_MAX_MS * Math.max(1, bytes / IMMEDIATELY_PARSED_BODY_MAX_BYTES);
      const { result, cost } = isCheckedImmediately ? work() : await taskQueue.runInTurn(sender, work, countedMaxMs);
      if (cost <= LIGHT_QUERY_COST_MAX) return result;
      // Even if its check needed no turn, an expensive operation waits for its sender's turn, because the caller now executes the document.
      if (isCheckedImmediately) await taskQueue.runInTurn(sender, () => undefined);
      taskQueue.extendPause(sender, cost * EXECUTION_MS_PER_VALUE);
      return result;
    },

    findCachedDocument: (hash) => checkedDocuments.get(hash),
  };
}
