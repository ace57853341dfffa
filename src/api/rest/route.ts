/** One row of the REST table: a documented path, the resolver's method, and the shape of its response. */
import type { Resolvers } from "../graphql/schema.js";
import type { RestRequest } from "./request.js";

export interface Route {
  method: "GET" | "POST" | "PUT" | "DELETE";
  path: string;
  /** HTTP status of a success; 200 by default. */
  http?: number;
  /** True if the changed resource has no version. A request with `If-Match` is then rejected instead of ignored. */
  stateless?: true;
  /** True if the response can contain `warnings`: the save succeeded but has an unexpected effect. */
  warns?: true;
  /** Maximum bytes of the body; BODY_MAX_BYTES by default. */
  bodyLimit?: number;
  /** Field of the body whose value is the operation's argument. Without it, the whole body is the value. */
  bodyField?: string;
  /**
   * True for a report of a client run. Visitors may then send up to `bodyLimit` bytes; on other routes at most
   * BODY_MAX_BYTES.
   */
  isReport?: true;
  /** True if access rules may allow anonymous callers. The operation rejects those that the rules do not allow. */
  open?: true;
  /** True for a route of anonymous callers, whose request itself proves their identity. Such a route is `open` too. */
  isForAnonymous?: true;
  /** Calls the resolver and builds the body of the response. */
  handle: (resolvers: Resolvers, request: RestRequest) => Promise<object>;
}
