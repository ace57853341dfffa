/** Buttons of the menus in the sidebar, and of the drawer. The libraries of the menus are loaded when a person first presses a button. */
import ChevronsUpDown from "icon:chevrons-up-down";
import CircleUser from "icon:circle-user";
import Menu from "icon:menu";
import { type ComponentProps, type ReactElement, type ReactNode, Suspense, useState } from "react";
import { PageBoundary } from "./page-boundary.js";

type ButtonProps = ComponentProps<"button">;

/** Icon of an app: a square with the first letter of its name. */
export const LetterIcon = ({ name }: { name: string }) => (
  <span className="app-letter" aria-hidden="true">
    {name.trim().slice(0, 1).toUpperCase()}
  </span>
);

export const AppButton = ({ name, ...props }: ButtonProps & { name: string }) => (
  <button type="button" className="app-button" title={name} {...props}>
    <LetterIcon name={name} />
    <b className="nav-label grow">{name}</b>
    <ChevronsUpDown className="nav-label" size={14} aria-hidden />
  </button>
);

export const AccountButton = ({ email, ...props }: ButtonProps & { email: string }) => (
  <button type="button" className="nav-link account-button" title={email || "Account"} {...props}>
    <CircleUser size={16} aria-hidden />
    <span className="nav-label grow">{email || "Account"}</span>
    <ChevronsUpDown className="nav-label" size={14} aria-hidden />
  </button>
);

export const DrawerButton = (props: ButtonProps) => (
  <button type="button" className="quiet drawer-button" aria-label="Open the navigation" {...props}>
    <Menu size={18} aria-hidden />
  </button>
);

interface LoadOnFirstUseProps {
  /** Renders the menu's button. Studio shows only this button until the menu is loaded. */
  renderButton: (props: ButtonProps) => ReactElement;
  /** Kind of popup that the button opens, for screen readers. */
  popupKind: "dialog" | "menu";
  /** The loaded menu, which has its own button and is open when it is first rendered. */
  children: ReactNode;
}

export function LoadOnFirstUse({ renderButton, popupKind, children }: LoadOnFirstUseProps) {
  const [isUsed, setUsed] = useState(false);
  const state = { "aria-haspopup": popupKind, "aria-expanded": false } as const;
  if (!isUsed) return renderButton({ ...state, onClick: () => setUsed(true) });
  return (
    <PageBoundary>
      <Suspense fallback={renderButton({ ...state, "aria-busy": true })}>{children}</Suspense>
    </PageBoundary>
  );
}
