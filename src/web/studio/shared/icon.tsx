/** Icons of Lucide in the color of the text. scripts/build-web.mjs uses this module for imports such as `import Bell from "icon:bell"`. */
import type { ComponentType } from "react";

export type IconComponent = ComponentType<{ size?: number; className?: string; "aria-hidden"?: boolean }>;

/** @param shapes the icon's shapes as SVG, on an area of 24 by 24 pixels */
export function createIcon(shapes: string): IconComponent {
  return ({ size = 24, ...attributes }) => (
    <svg
      xmlns="http://www.w3.org/2000/svg"
      width={size}
      height={size}
      viewBox="0 0 24 24"
      {...attributes}
      // biome-ignore lint/security/noDangerouslySetInnerHtml: the shapes are constants of a package
      dangerouslySetInnerHTML={{ __html: shapes }}
    />
  );
}
