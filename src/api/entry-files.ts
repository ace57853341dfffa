/**
 * Imports and exports entries of data sources (tables of an app) as files over HTTP, as streams. The GraphQL resolver
 * checks access, and src/rules checks the content.
 */
import { Readable, Transform } from "node:stream";
import multipart, { type MultipartFile, type MultipartValue } from "@fastify/multipart";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { ActionError } from "../errors.js";
import { BODY_MAX_BYTES, LARGE_BODY_MAX_BYTES } from "../limits.js";
import { type ExportFormat, parseExportFormat } from "../operations/data-sources/entry-export.js";
import {
  createCsvLayout,
  type ImportFormat,
  parseCsvColumnTypes,
  parseCsvDelimiter,
  parseImportRows,
} from "../operations/data-sources/row-streams.js";
import { describeValue } from "../rules/describe-value.js";
import { createContentDisposition } from "../rules/media-serving.js";
import { createQuotaHeaders } from "./context.js";
import { convertInvalidFormError, rejectInvalidUtf8 } from "./form-refusal.js";
import type { Resolvers } from "./graphql/schema.js";
import { STALLED_CLIENT_TIMEOUT_MS } from "./live/outbox.js";
import { disconnectSlowClient } from "./reader-pace.js";
import { createRestRequest } from "./rest/request.js";

const DATA_SOURCE_ROUTE = "/v1/apps/:appId/data-sources/:ds";

/** Maximum time without data from a sender, in milliseconds. The import keeps its database transaction open during this time. */
const SENDER_PAUSE_MAX_MS = 20_000;

/** Limits of the parser for upload forms. The parser accepts fields, but `readUploadedFile` then rejects the form and names the field. */
const UPLOAD_FORM_LIMITS = {
  fields: 20,
  fieldSize: 4_096,
  fieldNameSize: 100,
  headerPairs: 100,
  files: 1,
} as const;

const CONTENT_TYPE_BY_FORMAT: Record<ExportFormat, string> = {
  csv: "text/csv; charset=utf-8",
  json: "application/json; charset=utf-8",
  jsonl: "application/x-ndjson; charset=utf-8",
};

const FORMAT_BY_TYPE_PATTERN: readonly (readonly [RegExp, ImportFormat])[] = [
  [/^(?:text\/csv|application\/csv|application\/vnd\.ms-excel)\b/i, "csv"],
  [/^application\/(?:x-ndjson|jsonl|json-?lines|x-jsonlines)\b/i, "jsonl"],
  [/^application\/json\b/i, "json"],
];

/**
 * Returns the file format by the file name's extension, otherwise by the content type.
 * @throws ActionError REQUEST_INVALID for an unknown format
 */
function readFileFormat(type: string, name = ""): ImportFormat {
  const extension = /\.(csv|json|jsonl|ndjson)$/i.exec(name)?.[1]?.toLowerCase();
  const formatByExtension = extension === "ndjson" ? "jsonl" : (extension as ImportFormat | undefined);
  const format = formatByExtension ?? FORMAT_BY_TYPE_PATTERN.find(([pattern]) => pattern.test(type))?.[1];
  if (format) return format;
  throw new ActionError(
    "REQUEST_INVALID",
    `the Content-Type of an import must be text/csv, application/json, application/x-ndjson or multipart/form-data (with a file of one of the first three types) (got ${describeValue(type)})`,
  );
}

/** Passes on the bytes of an upload. Fails after `maxBytes` bytes, or if the sender pauses for too long (SENDER_PAUSE_MAX_MS). */
function limitUpload(stream: Readable, maxBytes: number, { raw }: FastifyRequest): Readable {
  let bytesLeft = maxBytes;
  const destroyStream = (error: Error) => stream.destroy(error);
  const silenceTimer = setTimeout(
    () =>
      destroyStream(
        new ActionError("REQUEST_INVALID", `no data of the upload arrived for ${SENDER_PAUSE_MAX_MS / 1_000} s`),
      ),
    SENDER_PAUSE_MAX_MS,
  );
  const countingStream = new Transform({
    transform(chunk: Buffer, _encoding, done) {
      silenceTimer.refresh();
      bytesLeft -= chunk.length;
      const megabytes = Math.floor(maxBytes / 2 ** 20);
      done(
        bytesLeft < 0 ? new ActionError("PAYLOAD_TOO_LARGE", `the file is larger than ${megabytes} MB`) : null,
        chunk,
      );
    },
  });
  const handleDisconnect = () => {
    if (!raw.complete)
      destroyStream(new ActionError("REQUEST_INVALID", "the upload ended unexpectedly; send the file again"));
  };
  raw.once("close", handleDisconnect);
  stream.once("error", (error) => countingStream.destroy(error));
  countingStream.once("close", () => {
    clearTimeout(silenceTimer);
    raw.off("close", handleDisconnect);
  });
  return stream.pipe(countingStream);
}

/** Yields the only file of the request. If the form has further fields or files, throws, so that nothing is imported. */
async function* readUploadedFile(request: FastifyRequest): AsyncGenerator<{ bytes: Readable; format: ImportFormat }> {
  if (!request.isMultipart()) {
    yield { bytes: request.raw, format: readFileFormat(request.headers["content-type"] ?? "") };
    return;
  }
  let hasFile = false;
  let silenceTimer: NodeJS.Timeout | undefined;
  try {
    for await (const part of request.parts() as AsyncIterable<MultipartFile | MultipartValue>) {
      if (part.type !== "file") {
        throw new ActionError(
          "REQUEST_INVALID",
          `the form of an import must contain only its file (got the field ${describeValue(part.fieldname)}); send options as query parameters`,
        );
      }
      rejectInvalidUtf8(part.filename, part.fieldname);
      hasFile = true;
      yield { bytes: part.file, format: readFileFormat(part.mimetype, part.filename) };
      // Disconnects a sender that stalls after the file, before the end of the form.
      silenceTimer = setTimeout(() => request.raw.destroy(), SENDER_PAUSE_MAX_MS);
    }
  } finally {
    clearTimeout(silenceTimer);
  }
  if (!hasFile) throw new ActionError("REQUEST_INVALID", "the form must contain a file (got none)");
}

async function importFile(request: FastifyRequest, reply: FastifyReply, entries: Resolvers["entries"]) {
  const { context } = request;
  const restRequest = createRestRequest(request, context);
  const shouldAppend = restRequest.queryFlag("append");
  const delimiter = restRequest.queryText("delimiter");
  const typesText = restRequest.queryText("types");
  const layout = createCsvLayout(restRequest.check(() => parseCsvDelimiter(delimiter)) ?? null);
  const types = restRequest.check(() => parseCsvColumnTypes(typesText)) ?? {};
  // A visitor of an app's page may import at most as many bytes as a usual request may contain.
  const isVisitor = context.caller === null || context.caller.kind === "live" || context.caller.kind === "viewer";
  const getMaxBytes = (format: ImportFormat) => {
    if (isVisitor) return BODY_MAX_BYTES;
    return format === "json" ? LARGE_BODY_MAX_BYTES : Number.POSITIVE_INFINITY;
  };
  const rows = async function* () {
    for await (const { bytes, format } of readUploadedFile(request))
      yield* parseImportRows(limitUpload(bytes, getMaxBytes(format), request), format, {
        layout,
        types,
        mayBeEmpty: shouldAppend,
      });
  };
  try {
    const importResult = await entries.importEntryFile(
      context,
      restRequest.pathId("appId"),
      restRequest.pathReference("ds"),
      {
        keepsExisting: shouldAppend,
        rows,
        layout,
      },
    );
    return reply.headers(createQuotaHeaders(context)).header("Cache-Control", "no-store").send(importResult);
  } catch (error) {
    throw convertInvalidFormError(error);
  }
}

async function exportFile(request: FastifyRequest, reply: FastifyReply, entries: Resolvers["entries"]) {
  const { context } = request;
  const restRequest = createRestRequest(request, context);
  const formatText = restRequest.queryText("format");
  const format = restRequest.check(() => parseExportFormat(formatText)) ?? "json";
  const { name, texts } = await entries.exportEntryFile(
    context,
    restRequest.pathId("appId"),
    restRequest.pathReference("ds"),
    {
      format,
      spreadsheet: restRequest.queryFlag("spreadsheet"),
    },
  );
  reply
    .headers(createQuotaHeaders(context))
    .header("Cache-Control", "no-store")
    .header("X-Content-Type-Options", "nosniff")
    .header("Content-Disposition", createContentDisposition("attachment", `${name}.${format}`))
    .type(CONTENT_TYPE_BY_FORMAT[format]);
  reply.raw.setTimeout(STALLED_CLIENT_TIMEOUT_MS, () => reply.raw.destroy());
  disconnectSlowClient(reply);
  return reply.send(Readable.from(texts, { objectMode: false }));
}

/** Registers POST `…/data-sources/:ds/import` and GET `…/export`. */
export function registerEntryImportExportRoutes(app: FastifyInstance, entries: Resolvers["entries"]): void {
  app.register(async (scope) => {
    scope.removeAllContentTypeParsers();
    await scope.register(multipart, { limits: { ...UPLOAD_FORM_LIMITS, fileSize: Number.POSITIVE_INFINITY } });
    scope.addContentTypeParser("*", (_request, _payload, done) => done(null, undefined));
    scope.get(`${DATA_SOURCE_ROUTE}/export`, (request, reply) => exportFile(request, reply, entries));
    scope.post(`${DATA_SOURCE_ROUTE}/import`, { config: { isStreamed: true } }, (request, reply) =>
      importFile(request, reply, entries),
    );
  });
}
