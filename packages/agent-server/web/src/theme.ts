// Light, dark, or as the system has it.

export type Theme = "system" | "light" | "dark";

const KEPT = "theme";

export function theme(): Theme {
  const kept = localStorage.getItem(KEPT);
  return kept === "light" || kept === "dark" ? kept : "system";
}

export function applyTheme(chosen: Theme = theme()): void {
  if (chosen === "system") delete document.documentElement.dataset["theme"];
  else document.documentElement.dataset["theme"] = chosen;
}

export function keepTheme(chosen: Theme): void {
  localStorage.setItem(KEPT, chosen);
  applyTheme(chosen);
}
