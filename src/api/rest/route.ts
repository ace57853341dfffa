/** Type of a REST route in the table rest/routes.ts: method and path, the call of a resolver, and the form of the response. */
import type { Resolvers } from "../graphql/schema.js";
import type { RestRequest } from "./request.js";

export interface Route {
  method: "GET" | "POST" | "PUT" | "DELETE";
  path: string;
  /** HTTP status code of a successful response; 200 by default. */
  successStatus?: number;
  /** True if the changed resource has no version. The service then rejects a request with `If-Match`. */
  hasNoVersion?: true;
  /** True if the response can contain `warnings`: the change was saved, but a part of it has no effect. */
  canReturnWarnings?: true;
  /** Maximum bytes of the body; BODY_MAX_BYTES by default. */
  bodyLimit?: number;
  /** For the OpenAPI document: field of the body that the resolver's argument describes. Without it, the argument is the whole body. */
  bodyField?: string;
  /** True for a report of a run in a browser. Visitors may then send up to `bodyLimit` bytes; on other routes at most BODY_MAX_BYTES. */
  isReport?: true;
  /**
   * True if callers without a credential can be allowed, for example by access rules or because the route signs them in. On other routes,
   * the service rejects a request without a credential before it reads the body.
   */
  allowsAnonymous?: true;
  /**
   * True if the route never needs a credential: it signs people in or out, accepts invitations, or starts sessions of visitors. Set
   * `allowsAnonymous` of the route too.
   */
  isForAnonymous?: true;
  handle: (resolvers: Resolvers, request: RestRequest) => Promise<object>;
}
