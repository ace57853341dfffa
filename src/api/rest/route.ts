/** One row of the REST facade: a documented path, the resolver's method behind it, the shape of its answer. */
import type { Resolvers } from "../graphql/schema.js";
import type { RestRequest } from "./request.js";

export interface Route {
  method: "GET" | "POST" | "PUT" | "DELETE";
  path: string;
  /** 200 unless said. */
  http?: number;
  /** True: a change of something that has no state of its own; an `If-Match` is refused instead of ignored. */
  stateless?: true;
  /** Bytes that the body may have; BODY_MAX_BYTES unless given. */
  bodyLimit?: number;
  /** Field of the body that has the value of the operation's argument; without it the whole body is the value. */
  bodyField?: string;
  /** True: a client run report, whose `bodyLimit` holds for visitors too; they otherwise have BODY_MAX_BYTES. */
  isReport?: true;
  /** Access rules may let in who has no credential: the operation refuses whom they do not. */
  open?: true;
  /** For callers without a credential, who prove who they are by it. It is open too. */
  isForAnonymous?: true;
  /** Calls the resolver and shapes the body. */
  answer: (resolvers: Resolvers, request: RestRequest) => Promise<object>;
}
