/**
 * POST `/v1/apps/:appId/communicate/events`: receives reports on sent messages from mail and SMS providers. The
 * signature of a report is its only credential.
 */
import type { FastifyInstance } from "fastify";
import type { DeliveryReports } from "../operations/communicate/delivery-reports.js";
import { toId } from "./rest/request.js";

const REPORT_MAX_BYTES = 256 * 1024;

const headerOf = (value: string | string[] | undefined): string | null => (typeof value === "string" ? value : null);

/** @param options.baseUrl the service's URL as providers call it. Twilio's signature covers this URL. */
export function registerDeliveryReports(
  app: FastifyInstance,
  { reports, baseUrl }: { reports: DeliveryReports; baseUrl: string },
): void {
  app.register(async (plugin) => {
    // The signature covers the raw text, whatever its content type.
    plugin.removeAllContentTypeParsers();
    plugin.addContentTypeParser("*", { parseAs: "string" }, (_request, body, done) => done(null, body));
    plugin.post<{ Params: { appId: string } }>(
      "/v1/apps/:appId/communicate/events",
      { bodyLimit: REPORT_MAX_BYTES },
      async (request, reply) => {
        const { context, params, headers, body, url } = request;
        reply.header("Cache-Control", "no-store");
        return reports.report(toId(params.appId), {
          address: context.address ?? "",
          body: typeof body === "string" ? body : "",
          url: baseUrl + url,
          signature: headerOf(headers["svc-signature"]),
          twilioSignature: headerOf(headers["x-twilio-signature"]),
        });
      },
    );
  });
}
