/** Examples of requests to an action that a person copies: for curl and in JavaScript. */
import type { Endpoint } from "../shared/model.js";

export interface CallExample {
  /** Name of the called endpoint. */
  name: string;
  curl: string;
  javascript: string;
}

const quoted = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`;

/** Headers with placeholders for the credentials that the person must insert. */
const PROOFS: Record<string, [name: string, value: string]> = {
  bearer: ["Authorization", "Bearer $TOKEN"],
  basic: ["Authorization", "Basic $LOGIN"],
  signature: ["X-Signature", "$SIGNATURE"],
};

function example(
  name: string,
  method: string,
  url: string,
  headers: [string, string][],
  body: string | null,
): CallExample {
  const hasBody = body !== null && method !== "GET" && method !== "HEAD";
  const all: [string, string][] = hasBody ? [...headers, ["Content-Type", "application/json"]] : headers;
  const curl = [
    `curl ${method === "GET" ? "" : `-X ${method} `}${quoted(url)}`,
    ...all.map(([key, value]) => `-H "${key}: ${value}"`),
    ...(hasBody ? [`-d ${quoted(body)}`] : []),
  ].join(" \\\n  ");
  const values = Object.fromEntries(all);
  const options = [
    `method: ${JSON.stringify(method)}`,
    ...(all.length > 0 ? [`headers: ${JSON.stringify(values)}`] : []),
    ...(hasBody ? [`body: JSON.stringify(${body})`] : []),
  ].join(",\n  ");
  return { name, curl, javascript: `await fetch(${JSON.stringify(url)}, {\n  ${options},\n});` };
}

/** Returns examples for the live URL of an HTTP trigger. */
export function endpointExample({ method, url }: Endpoint, authType: string, payload: string): CallExample {
  const proof = PROOFS[authType];
  const used = method ?? "POST";
  return example(`${method ?? "Any method"} ${new URL(url).pathname}`, used, url, proof ? [proof] : [], payload);
}

/** Returns examples for `run` and `runWithResult`, with a token. */
export function runExamples(base: string, appId: number, name: string, payload: string): CallExample[] {
  return ["runWithResult", "run"].map((verb) => {
    const url = `${base}/v3/apps/${appId}/actions/${encodeURIComponent(name)}/${verb}?by=name`;
    return example(verb, "POST", url, [["Auth-token", "$TOKEN"]], payload);
  });
}
