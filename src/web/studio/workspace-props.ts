/** What a workspace is given, and hands on to its dock. */
import type { PageProps } from "./routes.js";

export interface WorkspaceProps extends PageProps {
  id: number | "new";
  onCreated: (id: number) => void;
}
