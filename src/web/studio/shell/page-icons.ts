/** Icons of Studio's pages, for the sidebar and the command palette. */
import ArrowLeftRight from "lucide-react/icons/arrow-left-right";
import Bell from "lucide-react/icons/bell";
import CalendarClock from "lucide-react/icons/calendar-clock";
import Database from "lucide-react/icons/database";
import FolderGit from "lucide-react/icons/folder-git";
import GitBranch from "lucide-react/icons/git-branch";
import History from "lucide-react/icons/history";
import House from "lucide-react/icons/house";
import Image from "lucide-react/icons/image";
import KeyRound from "lucide-react/icons/key-round";
import Play from "lucide-react/icons/play";
import Plug from "lucide-react/icons/plug";
import ScrollText from "lucide-react/icons/scroll-text";
import Send from "lucide-react/icons/send";
import Settings from "lucide-react/icons/settings";
import Siren from "lucide-react/icons/siren";
import SlidersHorizontal from "lucide-react/icons/sliders-horizontal";
import Users from "lucide-react/icons/users";
import Zap from "lucide-react/icons/zap";
import type { ComponentType } from "react";
import type { SidebarLink } from "./views.js";

export type IconComponent = ComponentType<{ size?: number; "aria-hidden"?: boolean }>;

export const PAGE_ICONS: Record<SidebarLink, IconComponent> = {
  home: House,
  actions: Zap,
  data: Database,
  media: Image,
  runs: Play,
  schedule: CalendarClock,
  outbox: Send,
  notifications: Bell,
  alerts: Siren,
  "app/audit": ScrollText,
  settings: SlidersHorizontal,
  "app/connections": Plug,
  "app/people": Users,
  "app/tokens": KeyRound,
  "app/versions": History,
  "app/stages": GitBranch,
  "app/git": FolderGit,
  "app/transfer": ArrowLeftRight,
  "app/general": Settings,
};
