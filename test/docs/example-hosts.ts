/** Servers on loopback that replace the hosts of the docs' examples: an API over TLS, and a provider of language models. */
import { createServer, type RequestListener } from "node:http";
import type { AddressInfo, Server } from "node:net";
import { text } from "node:stream/consumers";
import { openAiAnswerWith } from "../api/ai-answers.js";
import { tlsServer, trustLocalhost } from "../harness/localhost-tls.js";

export interface ExampleHosts {
  /** Returns the code with the address of the local API instead of `https://api.example.com`. */
  replaceApiOrigin(code: string): string;
  /** Origin of the local API. */
  apiOrigin: string;
  /** Value of the setting `__ai`. */
  ai: object;
  stop(): Promise<void>;
}

const API_ORIGIN = "https://api.example.com";

/** Responses of the provider, by the end of the request's path. */
const MODEL_ANSWERS: Readonly<Record<string, string>> = {
  "/chat/completions": openAiAnswerWith("Hello there"),
  "/embeddings": JSON.stringify({ data: [{ embedding: [0.5, -1] }, { embedding: [1, 2] }], usage: {} }),
  "/images/generations": JSON.stringify({ data: [{ b64_json: "iVBORw0KGgo=" }] }),
  "/audio/transcriptions": JSON.stringify({ text: "two seats" }),
};

/** Simulates the creation of a resource: responds with 201 and the body of the request. */
const createReceived: RequestListener = (request, response) => {
  void text(request).then((body) => response.writeHead(201, { "content-type": "application/json" }).end(body));
};

const answerAsModel: RequestListener = (request, response) => {
  const answer = MODEL_ANSWERS[request.url!.replace(/^\/v1/, "")];
  request.resume().once("end", () => {
    response.writeHead(answer ? 200 : 404, { "content-type": "application/json" }).end(answer ?? "{}");
  });
};

async function portOf(server: Server): Promise<number> {
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  return (server.address() as AddressInfo).port;
}

export async function startExampleHosts(): Promise<ExampleHosts> {
  const undoTrust = trustLocalhost();
  const [api, models] = [tlsServer(createReceived), createServer(answerAsModel)];
  const apiOrigin = `https://localhost:${await portOf(api)}`;
  const baseUrl = `http://127.0.0.1:${await portOf(models)}/v1`;
  return {
    replaceApiOrigin: (code) => code.replaceAll(API_ORIGIN, apiOrigin),
    apiOrigin,
    ai: { provider: "openai", baseUrl, key: "sk-0123456789abcdefghijklmnop", models: null },
    async stop() {
      undoTrust();
      for (const server of [api, models]) {
        server.closeAllConnections();
        await new Promise((closed) => server.close(closed));
      }
    },
  };
}
