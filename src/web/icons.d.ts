/** Declares imports of icons for TypeScript. The bundler handles these imports. */
declare module "icon:*" {
  const icon: import("./studio/shared/icon.js").IconComponent;
  // biome-ignore lint/style/noDefaultExport: each module is one icon, and the name of the module is the icon's
  export default icon;
}
