/** Props of an action's workspace and of its dock. */
import type { PageProps } from "../shell/page-props.js";

export interface WorkspaceProps extends PageProps {
  id: number | "new";
  onCreated: (id: number) => void;
}
