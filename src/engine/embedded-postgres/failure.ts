/** Error of the embedded PostgreSQL. The message is one line for the operator, without secrets. */
import { StartError } from "../../errors.js";

export class EmbeddedPostgresError extends StartError {
  override readonly name = "EmbeddedPostgresError";
}
