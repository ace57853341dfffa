/** One row of the REST table: a documented path, the resolver's method, and the shape of its response. */
import type { Resolvers } from "../graphql/schema.js";
import type { RestRequest } from "./request.js";

export interface Route {
  method: "GET" | "POST" | "PUT" | "DELETE";
  path: string;
  /** 200 unless said. */
  http?: number;
  /** True: changes something without a state; an `If-Match` is rejected instead of ignored. */
  stateless?: true;
  /** Bytes that the body may have; BODY_MAX_BYTES unless given. */
  bodyLimit?: number;
  /** Field of the body that has the value of the operation's argument; without it the whole body is the value. */
  bodyField?: string;
  /** True: a client run report, whose `bodyLimit` holds for visitors too; they otherwise have BODY_MAX_BYTES. */
  isReport?: true;
  /** Access rules may allow anonymous callers: the operation rejects those that they do not allow. */
  open?: true;
  /** For anonymous callers, who prove their identity by the request. The route is open too. */
  isForAnonymous?: true;
  /** Calls the resolver and shapes the body. */
  answer: (resolvers: Resolvers, request: RestRequest) => Promise<object>;
}
