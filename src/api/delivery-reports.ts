/**
 * POST `/v1/apps/:appId/communicate/events`: mail and SMS providers report here whether a message was delivered. The signature of a report
 * is its only credential.
 */
import type { FastifyInstance } from "fastify";
import type { DeliveryReports } from "../operations/communicate/delivery-reports.js";
import { parsePathId } from "./rest/request.js";

const REPORT_MAX_BYTES = 256 * 1024;

const readSingleHeader = (value: string | string[] | undefined): string | null =>
  typeof value === "string" ? value : null;

/**
 * @param options.baseUrl URL under which providers call the service. Twilio's reports have a signature that covers this
 * URL
 */
export function registerDeliveryReportRoutes(
  app: FastifyInstance,
  { reports, baseUrl }: { reports: DeliveryReports; baseUrl: string },
): void {
  app.register(async (plugin) => {
    // The signature covers the body's bytes, so Fastify must not parse the body, whatever its content type.
    plugin.removeAllContentTypeParsers();
    plugin.addContentTypeParser("*", { parseAs: "string" }, (_request, body, done) => done(null, body));
    plugin.post<{ Params: { appId: string } }>(
      "/v1/apps/:appId/communicate/events",
      { bodyLimit: REPORT_MAX_BYTES },
      async (request, reply) => {
        const { context, params, headers, body, url } = request;
        reply.header("Cache-Control", "no-store");
        return reports.report(parsePathId(params.appId), {
          address: context.address ?? "",
          body: typeof body === "string" ? body : "",
          url: baseUrl + url,
          signature: readSingleHeader(headers["svc-signature"]),
          twilioSignature: readSingleHeader(headers["x-twilio-signature"]),
        });
      },
    );
  });
}
