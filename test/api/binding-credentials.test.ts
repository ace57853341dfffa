/** Tests the credentials that the service adds to requests: AWS signatures as S3 computes them, and refresh tokens of OAuth 2. */
import { createHash, createHmac } from "node:crypto";
import type { IncomingMessage } from "node:http";
import { expect } from "chai";
import { BoundRequests, REQUEST_CODE } from "./bound-requests.js";

const AWS_SECRET = "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY";

const hmac = (key: string | Buffer, text: string) => createHmac("sha256", key).update(text).digest();

/** Computes the signature of a GET request without a query, as S3 does (AWS Signature Version 4). */
function signForS3({ headers }: IncomingMessage, path: string): string {
  const [date, hash] = [String(headers["x-amz-date"]), String(headers["x-amz-content-sha256"])];
  const canonicalHeaders = [`host:${headers.host}`, `x-amz-content-sha256:${hash}`, `x-amz-date:${date}`, ""];
  const canonicalRequest = ["GET", path, "", ...canonicalHeaders, "host;x-amz-content-sha256;x-amz-date", hash];
  const scope = [date.slice(0, 8), "eu-west-1", "s3", "aws4_request"];
  const digest = createHash("sha256").update(canonicalRequest.join("\n")).digest("hex");
  const key = scope.reduce<string | Buffer>(hmac, `AWS4${AWS_SECRET}`);
  return hmac(key, `AWS4-HMAC-SHA256\n${date}\n${scope.join("/")}\n${digest}`).toString("hex");
}

describe("credentials of secret bindings", () => {
  let bound: BoundRequests;
  let origin: string;

  before(async () => {
    bound = await BoundRequests.start();
    ({ origin } = bound);
  });
  after(() => bound.stop());
  beforeEach(() => bound.reset());

  it("for S3 sign the path with all reserved characters encoded", async () => {
    await bound.set({ __s3: `AKIDEXAMPLE:${AWS_SECRET}` });
    await bound.bind([{ key: "__s3", origin, in: "aws-sigv4", name: "s3/eu-west-1" }]);
    for (const [path, signed] of [
      ["/plain/a.txt", "/plain/a.txt"],
      ["/year=2026/report (1).pdf", "/year%3D2026/report%20%281%29.pdf"],
      ["/caf\u00e9/a+b@c,d%3b!'*~", "/caf%C3%A9/a%2Bb%40c%2Cd%3B%21%27%2A~"],
    ] as const) {
      bound.reset();
      await bound.run(REQUEST_CODE, { options: { auth: "__s3", url: origin + path } });
      const [request] = bound.received as [IncomingMessage];
      expect(request.headers.authorization, path).to.match(new RegExp(`Signature=${signForS3(request, signed)}$`));
    }
  });

  it("keep the refresh token of OAuth 2 until the provider replaces it", async () => {
    const sentTokens: (string | null)[] = [];
    bound.answer = (request, response) => {
      if (request.url !== "/token") return response.end("fine");
      sentTokens.push(new URLSearchParams((request as IncomingMessage & { text: string }).text).get("refresh_token"));
      const refresh_token = ["", undefined, "second-refresh-token", ""][sentTokens.length - 1];
      const access_token = `access-${sentTokens.length}-${"a".repeat(20)}`;
      response.end(JSON.stringify({ access_token, refresh_token, expires_in: 1 }));
    };
    await bound.set({ __refresh: "first-refresh-token" });
    const oauth = { tokenUrl: `${origin}/token`, clientId: "client", grant: "refresh_token" };
    await bound.bind([{ key: "__refresh", origin, in: "oauth2", ...oauth }]);
    for (let n = 0; n < 4; n += 1) await bound.run(REQUEST_CODE, { options: { auth: "__refresh" } });
    const first = Array(3).fill("first-refresh-token");
    expect(sentTokens).to.deep.equal([...first, "second-refresh-token"]);
  });
});
