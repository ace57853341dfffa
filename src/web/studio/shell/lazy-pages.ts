/** Components of Studio's pages. Each page is loaded when it is first opened, and receives its props from the frame. */
import { lazyRouteComponent, type RouteComponent } from "@tanstack/react-router";
import { createContext, createElement, use } from "react";
import type { PageProps } from "./page-props.js";
import { loadPage } from "./pages.js";
import { VIEW_NAMES, type View } from "./views.js";

/** Props of the open page. */
export const PageContext = createContext<PageProps | null>(null);

const lazyPage = (view: View): RouteComponent =>
  lazyRouteComponent(async () => {
    const Page = await loadPage(view);
    return { default: () => createElement(Page, use(PageContext)!) };
  });

export const PAGES = Object.fromEntries(VIEW_NAMES.map((view) => [view, lazyPage(view)])) as Readonly<
  Record<View, RouteComponent>
>;
