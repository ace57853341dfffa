/** Uploads and downloads media files over HTTP, as a whole or in byte ranges. The resolver checks access. */
import type { Readable } from "node:stream";
import multipart, { type MultipartFile, type MultipartValue } from "@fastify/multipart";
import type { FastifyInstance, FastifyReply, FastifyRequest } from "fastify";
import { ActionError } from "../errors.js";
import { FILES_PER_UPLOAD } from "../limits.js";
import { throwDeferredError } from "../operations/access/access-checks.js";
import type { MediaContents } from "../operations/media/contents.js";
import type { MediaUploadInProgress } from "../operations/media/uploads.js";
import { describeValue } from "../rules/describe-value.js";
import { parseMediaFileVariant, parseMediaFolderId } from "../rules/media-fields.js";
import {
  containsEntityTag,
  createContentDisposition,
  getMediaResponseHeaders,
  parseRangeHeader,
} from "../rules/media-serving.js";
import { createFlatShape, refuseUnknownFields } from "../rules/unknown-fields.js";
import { convertInvalidFormError, rejectInvalidUtf8 } from "./form-refusal.js";
import type { Resolvers } from "./graphql/schema.js";
import { STALLED_CLIENT_TIMEOUT_MS } from "./live/outbox.js";
import { disconnectSlowClient } from "./reader-pace.js";
import { createRestRequest } from "./rest/request.js";

const FILES_ROUTE = "/v1/apps/:appId/media/files";

/** Limits of an upload form, which needs few fields besides the files: names and IDs. */
const UPLOAD_FORM_LIMITS = { fields: 20, fieldSize: 4_096, fieldNameSize: 100, headerPairs: 100 } as const;

const UPLOAD_FORM_SHAPE = createFlatShape(["folderId", "name"]);

type FormPart = MultipartFile | MultipartValue;

function readContentLength({ headers }: FastifyRequest): number | null {
  const text = headers["content-length"] ?? "";
  return /^\d{1,15}$/.test(text) ? Number(text) : null;
}

/**
 * Returns a function that must be called with each file of an upload before the file is read. If the client disconnects, the read of the
 * current file then fails. Otherwise it would never end.
 */
function abortReadsOnDisconnect({ raw }: FastifyRequest) {
  let currentFile: Readable | undefined;
  const destroyCurrentFile = () => {
    if (!raw.complete)
      currentFile?.destroy(
        new Error("the upload was aborted, because the connection closed before the end of the request"),
      );
  };
  raw.once("close", destroyCurrentFile);
  return (file: Readable): Readable => {
    currentFile = file;
    if (raw.destroyed) destroyCurrentFile();
    return file;
  };
}

/** Reads an upload form. `folderId` and `name` come from the URL or from form fields before the files. */
async function receiveUploadForm(
  request: FastifyRequest,
  upload: MediaUploadInProgress,
  fields: Record<"folderId" | "name", unknown>,
): Promise<object[]> {
  const readFolderId = () => parseMediaFolderId(fields["folderId"] ?? null);
  const trackFile = abortReadsOnDisconnect(request);
  for await (const part of request.parts() as AsyncIterable<FormPart>) {
    rejectInvalidUtf8(part.fieldname, "the name of a field");
    rejectInvalidUtf8(part.type === "file" ? part.filename : part.value, part.fieldname);
    if (part.type === "file") await upload.receive(trackFile(part.file), part.filename, readFolderId());
    else {
      refuseUnknownFields({ [part.fieldname]: part.value }, UPLOAD_FORM_SHAPE);
      fields[part.fieldname as keyof typeof fields] = part.value;
    }
  }
  return upload.finish({ folderId: readFolderId(), name: fields["name"] });
}

/** Headers of a file's contents. The browser shows the contents in a document with an opaque origin, without scripts. */
const CONTENTS_HEADERS = {
  "x-content-type-options": "nosniff",
  "content-security-policy":
    "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src 'self'; media-src 'self'; frame-ancestors 'none'",
  // Pages of other origins may show pictures of an app that are public or have a signed link.
  "cross-origin-resource-policy": "cross-origin",
  "referrer-policy": "no-referrer",
  "accept-ranges": "bytes",
  vary: "Auth-token, Authorization, Cookie",
} as const;

function createContentHeaders(
  { name, contentType, isDecodablePicture, isPublic, tag }: MediaContents,
  isDownload: boolean,
) {
  const servingHeaders = getMediaResponseHeaders(contentType, isDecodablePicture);
  return {
    ...CONTENTS_HEADERS,
    "content-type": servingHeaders.contentType,
    "content-disposition": createContentDisposition(isDownload ? "attachment" : servingHeaders.disposition, name),
    // `no-cache` makes browsers ask the service at each use, so that a deletion or a removed permission takes effect at once.
    "cache-control": isPublic ? "public, no-cache" : "private, no-cache",
    etag: tag,
  };
}

async function sendContents(
  request: FastifyRequest,
  reply: FastifyReply,
  contents: MediaContents,
): Promise<FastifyReply> {
  const { headers, method } = request;
  const { tag, bytes } = contents;
  if (containsEntityTag(headers["if-none-match"], tag)) return reply.code(304).send();
  const mayUseRange = bytes !== null && (headers["if-range"] === undefined || headers["if-range"] === tag);
  const range = mayUseRange ? parseRangeHeader(headers.range, bytes) : null;
  if (range === "none") {
    reply.header("content-range", `bytes */${bytes}`).removeHeader("etag");
    throw new ActionError("RANGE_NOT_SATISFIABLE");
  }
  if (range) reply.code(206).header("content-range", `bytes ${range.start}-${range.end}/${bytes}`);
  const length = range ? range.end - range.start + 1 : bytes;
  if (length !== null) reply.header("content-length", length);
  if (method === "HEAD") return reply.send();
  const contentStream = await contents.open(range ?? undefined);
  reply.raw.setTimeout(STALLED_CLIENT_TIMEOUT_MS, () => reply.raw.destroy());
  disconnectSlowClient(reply);
  return reply.send(contentStream);
}

async function handleContentsRequest(
  request: FastifyRequest,
  reply: FastifyReply,
  media: Resolvers["media"],
): Promise<FastifyReply> {
  const { context } = request;
  const restRequest = createRestRequest(request, context);
  const [expires, signature, download] = [
    restRequest.queryText("expires"),
    restRequest.queryText("signature"),
    restRequest.queryText("download"),
  ];
  const link = expires !== undefined && signature !== undefined ? { expires, signature } : null;
  const input = {
    size: restRequest.queryText("size"),
    width: restRequest.queryText("width"),
    format: restRequest.queryText("format"),
    quality: restRequest.queryText("quality"),
  };
  const variant = restRequest.check(() => parseMediaFileVariant(input)) ?? { kind: "whole" };
  const contents = await media.openContents(
    context,
    restRequest.pathId("appId"),
    restRequest.pathId("id"),
    variant,
    link,
  );
  // Throws the error for an invalid query parameter. The access check throws it earlier, but a signed link replaces this check.
  throwDeferredError(context);
  reply.headers(createContentHeaders(contents, download !== undefined));
  try {
    return await sendContents(request, reply, contents);
  } catch (error) {
    // An error response must not have the headers that describe the file's contents.
    for (const name of ["content-disposition", "etag", "content-length", "content-type"]) reply.removeHeader(name);
    if ((error as ActionError).status !== "RANGE_NOT_SATISFIABLE") reply.removeHeader("content-range");
    reply.header("cache-control", "no-store");
    throw error;
  }
}

/** Registers POST `/v1/apps/:appId/media/files` and GET `…/files/:id/contents`. */
export function registerMediaContentRoutes(app: FastifyInstance, media: Resolvers["media"]): void {
  app.register(async (scope) => {
    await scope.register(multipart, {
      limits: { ...UPLOAD_FORM_LIMITS, files: FILES_PER_UPLOAD + 1, fileSize: Number.POSITIVE_INFINITY },
    });
    scope.post(FILES_ROUTE, { config: { isStreamed: true } }, async (request, reply) => {
      const { context } = request;
      const restRequest = createRestRequest(request, context);
      const fields = { folderId: restRequest.queryText("folderId"), name: restRequest.queryText("name") };
      restRequest.check(() => {
        if (!request.isMultipart())
          throw new ActionError(
            "REQUEST_INVALID",
            `the body must be multipart/form-data (got ${describeValue(request.headers["content-type"])})`,
          );
      });
      const upload = await media.beginUpload(context, restRequest.pathId("appId"), readContentLength(request));
      try {
        const files = await receiveUploadForm(request, upload, fields);
        return reply.code(201).header("cache-control", "no-store").send({ files });
      } catch (error) {
        throw convertInvalidFormError(error);
      } finally {
        await upload.close();
      }
    });
  });
  // Replaces Fastify's HEAD handler, which would read the whole file and then drop its contents.
  app.route({
    method: ["GET", "HEAD"],
    url: `${FILES_ROUTE}/:id/contents`,
    exposeHeadRoute: false,
    handler: (request, reply) => handleContentsRequest(request, reply, media),
  });
}
