/** One row of the REST facade: a documented path, the resolver's method behind it, the shape of its answer. */
import type { Resolvers } from "../graphql/schema.js";
import type { RestRequest } from "./request.js";

export interface Route {
  method: "GET" | "POST" | "PUT" | "DELETE";
  path: string;
  /** 200 unless said. */
  http?: number;
  /** When that which the answer shows was changed last, for its `ETag`. */
  updatedAt?: (body: never) => string;
  /** Access rules may let in who has no credential: the operation refuses whom they do not. */
  open?: true;
  /** Calls the resolver and shapes the body. */
  answer: (resolvers: Resolvers, request: RestRequest) => Promise<object>;
}
