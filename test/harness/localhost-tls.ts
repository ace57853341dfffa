/** Creates HTTPS servers with a certificate for localhost. The certificate's private key is in this file, so only tests may trust it. */
import { createHash, X509Certificate } from "node:crypto";
import type { RequestListener } from "node:http";
import { createSecureServer, type Http2SecureServer } from "node:http2";
import { createServer, type Server } from "node:https";
import { getCACertificates, setDefaultCACertificates } from "node:tls";

const TEST_CERTIFICATE = `-----BEGIN CERTIFICATE-----
MIIBmzCCAUGgAwIBAgIUHp0HLXai1hiYdbI9nnAN/Szz1tUwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJbG9jYWxob3N0MCAXDTI2MTEyMTE4MjY0MloYDzIxMjYxMDI4
MTgyNjQyWjAUMRIwEAYDVQQDDAlsb2NhbGhvc3QwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAAQhoE+gr3osEk5wKvhogEMsPIAs19twfgp+IFVtZ93BGcmfaAYtX7/L
LXd5asGrBgohlHj4DVW4/GNQdsqAQrLPo28wbTAdBgNVHQ4EFgQUevefcyhlXKXt
90NR4grPkLGCFBEwHwYDVR0jBBgwFoAUevefcyhlXKXt90NR4grPkLGCFBEwDwYD
VR0TAQH/BAUwAwEB/zAaBgNVHREEEzARgglsb2NhbGhvc3SHBH8AAAEwCgYIKoZI
zj0EAwIDSAAwRQIgR9nAjzl7tWVmxWppmuKgdfhRaWfsupioFk66ekGkUOYCIQC+
gtb+EKgK25CJAzWgPrl6zZSoHnGISkmGP+pdP0Hm4Q==
-----END CERTIFICATE-----`;

const KEY = `-----BEGIN PRIVATE KEY-----
MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgawpHpH/MHYx4RzUv
3UE1SBhkZYVp66xcyIvfpqKiCQehRANCAAQhoE+gr3osEk5wKvhogEMsPIAs19tw
fgp+IFVtZ93BGcmfaAYtX7/LLXd5asGrBgohlHj4DVW4/GNQdsqAQrLP
-----END PRIVATE KEY-----`;

const { publicKey } = new X509Certificate(TEST_CERTIFICATE);
/** Hash of the public key. Chromium's flag `--ignore-certificate-errors-spki-list` with this hash accepts the certificate for any host. */
export const KEY_HASH = createHash("sha256")
  .update(publicKey.export({ type: "spki", format: "der" }))
  .digest("base64");

/** Makes this process trust the certificate, besides the default certificates. @returns a function that ends the trust */
export function trustLocalhost(): () => void {
  const before = getCACertificates("default");
  setDefaultCACertificates([...before, TEST_CERTIFICATE]);
  return () => setDefaultCACertificates(before);
}

export const tlsServer = (listener: RequestListener): Server =>
  createServer({ key: KEY, cert: TEST_CERTIFICATE }, listener);

/** Creates a server that supports HTTP/2, and HTTP/1.1 for clients that request it. */
export const http2Server = (listener: RequestListener): Http2SecureServer =>
  createSecureServer({ key: KEY, cert: TEST_CERTIFICATE, allowHTTP1: true }, listener as never);
